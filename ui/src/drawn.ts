/** A path drawn from links, as the API takes it. */
export interface Drawn {
  title?: string;
  client_mtu?: number;
  server_mtu?: number;
  links: Link[];
}

export interface Link {
  name?: string;
  mtu?: number;
  icmp?: boolean;
  framing?: string;
  down: Way;
  up?: Way;
  hop?: { nat?: boolean; mss_clamp?: string };
}

export interface Way {
  rate: string;
  delay: string;
  queue?: string;
  loss?: string;
  jitter?: string;
}

const KEY = "windtunnel-drawn";

/** The path that was drawn in this tab. */
export function drawn(): Drawn | null {
  try {
    const text = sessionStorage.getItem(KEY);
    return text ? (JSON.parse(text) as Drawn) : null;
  } catch {
    return null;
  }
}

export const keep = (path: Drawn): void => sessionStorage.setItem(KEY, JSON.stringify(path));
