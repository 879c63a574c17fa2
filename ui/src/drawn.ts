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
  /** A shipped path's link, whose other stages it has. */
  keeps?: Keeps;
}

export interface Keeps {
  preset: string;
  link: number;
  without: string[];
}

export interface Way {
  rate: string;
  delay: string;
  queue?: string;
  loss?: string;
  jitter?: string;
}

const KEY = "windtunnel-drawn";

/** The path that the address says: it stays in the part that no server is sent. */
function addressed(): Drawn | null {
  try {
    const text = new URLSearchParams(location.hash.slice(1)).get("path");
    const path = text ? (JSON.parse(text) as Drawn) : null;
    return path && Array.isArray(path.links) && path.links.length > 0 && path.links.every(({ down }) => typeof down?.rate === "string") ? path : null;
  } catch {
    return null;
  }
}

/** The path that was drawn in this tab, or came with the address. */
export function drawn(): Drawn | null {
  try {
    const said = addressed();
    if (said) return said;
    const text = sessionStorage.getItem(KEY);
    return text ? (JSON.parse(text) as Drawn) : null;
  } catch {
    return null;
  }
}

/** Larger than this no path is kept: a title of megabytes is no title. */
const LARGEST = 100_000;

/** Keeps it for other views, and for whoever gets the address. */
export function keep(path: Drawn): void {
  const text = JSON.stringify(path);
  if (text.length > LARGEST) return;
  sessionStorage.setItem(KEY, text);
  if (location.pathname === "/lab") addressLater(text);
}

let waiting = 0;

/** Writes it into the address a moment later: browsers forbid too many changes a second. */
function addressLater(text: string): void {
  clearTimeout(waiting);
  waiting = window.setTimeout(() => {
    if (location.pathname === "/lab") history.replaceState(null, "", `/lab#${new URLSearchParams({ path: text })}`);
  }, 250);
}
