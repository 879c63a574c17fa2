import { useEffect, useState } from "preact/hooks";
import { get, isMissing } from "./api";
import { useConnection } from "./connection";
import { followRun, type Told } from "./events";
import type { End, RunSummary as Run } from "./schema";

export type { End, RunSummary as Run } from "./schema";

/** Follows the events of a run; a broken connection goes on once the server is back. `gone` hears that it knows the run no more. */
export function useEvents<T>(run: Run | null, nothing: T, take: (heard: T, told: Told) => T, gone?: () => void): T {
  const [heard, setHeard] = useState(nothing);
  useEffect(() => {
    setHeard(nothing);
    if (!run) return;
    return followRun(run.id, {
      heard: (told) => setHeard((heard) => take(heard, told)),
      anew: (all) => setHeard(all.reduce(take, nothing)),
      gone: () => gone?.(),
    });
  }, [run?.id]);
  return heard;
}

/** A run by its name: `null` while it is asked for, `"gone"` where this server doesn't know it. */
export function useRun(id: string | null): [Run | "gone" | null, (run: Run) => void] {
  const [run, setRun] = useState<Run | "gone" | null>(null);
  const back = useConnection().turn;
  useEffect(() => {
    if (!id) return setRun(null);
    if (run && run !== "gone" && run.id === id && back === 0) return;
    get<Run>(`runs/${encodeURIComponent(id)}`).then(setRun, (error) => isMissing(error) && setRun("gone"));
  }, [id, back]);
  return [run, setRun];
}

/** What is known of a run that this server doesn't know: it may have run before the server was started, or before sixteen others of its kind. */
export const forgotten = (what: string): string => `This server no longer has that ${what}: it keeps the last 16, and none from before it was started.`;

/** What a run says: its answer, its end, its lines and samples, and how far a scan of sizes is. */
export interface Answered<T> {
  result: T | null;
  end: End | null;
  lines: string[];
  samples: Sample[];
  scan: { most: number; per_second: number; sent: number } | null;
}

/** How a transfer stands. */
export interface Sample {
  end: "sender" | "receiver";
  t_us: number;
  bytes: number;
  snd_cwnd: number;
  rtt: number;
  retransmits: number;
}

const NOTHING: Answered<never> = { result: null, end: null, lines: [], samples: [], scan: null };

export function useAnswer<T>(run: Run | null): Answered<T> {
  return useEvents<Answered<T>>(run, NOTHING, (heard, { kind, data }) => {
    if (kind === "result") return { ...heard, result: data as T };
    if (kind === "end") return { ...heard, end: data as End };
    if (kind === "line") return { ...heard, lines: [...heard.lines, (data as { text: string }).text] };
    if (kind === "scanning") {
      const { packets, per_second } = data as { packets: number; per_second: number };
      return { ...heard, scan: { most: packets, per_second, sent: 0 } };
    }
    if (kind === "scanned" && heard.scan) {
      const sent = (data as { packets: number }).packets;
      // Where losses are split by direction, more may leave than was said first.
      return { ...heard, scan: { ...heard.scan, sent, most: Math.max(sent, heard.scan.most) } };
    }
    return kind === "sample" ? { ...heard, samples: [...heard.samples, data as Sample] } : heard;
  });
}

/** Whether a run goes on: its answer may be here before it has ended, and until then the server starts no other one. */
export function useUnderWay(run: Run | null): boolean {
  const over = useEvents(run, false, (over, { kind }) => over || kind === "end");
  return run !== null && run.end === null && !over;
}

/** The newest run of a kind, which goes on even if the page was closed; and how another one is shown. */
export function useLast(kind: Run["kind"]): [Run | null, (run: Run | null) => void, boolean] {
  const [run, setRun] = useState<Run | null>(null);
  const [asked, setAsked] = useState(false);
  useEffect(() => {
    get<Run[]>("runs")
      .then((runs) => setRun(runs.find((run) => run.kind === kind) ?? null))
      .catch(() => {})
      .finally(() => setAsked(true));
  }, []);
  return [run, setRun, asked];
}

/** Samples as columns. */
export interface Columns {
  t_us: number[];
  bytes: number[];
  snd_cwnd: number[];
  rtt: number[];
  retransmits: number[];
}

/** The window over which a rate is told: acknowledgements come in bursts, a flight of them each round trip. */
export const windowOf = (rtt_us: ArrayLike<number>, from = 0, count = rtt_us.length): number => {
  let most = 0;
  for (let at = from; at < from + count; at++) most = Math.max(most, rtt_us[at] ?? 0);
  return Math.max(100_000, 2 * most);
};

/**
 * The sample from which on a rate is told that would begin at `at`: where that falls into a standstill, the one with which the
 * standstill began. Else what came at its end, all at once, would be told as if the line had carried it in less time.
 */
export function since(bytes: ArrayLike<number>, at: number, first = 0): number {
  while (at > first && bytes[at - 1] === bytes[at]) at--;
  return at;
}

/** The rate over the last window, Mbit/s; before there was as much time, over a window that began with nothing. */
export function rates(t_us: ArrayLike<number>, bytes: ArrayLike<number>, window_us = 100_000): number[] {
  const out: number[] = [];
  for (let at = 0, before = 0; at < t_us.length; at++) {
    while (before < at - 1 && t_us[at]! - t_us[before + 1]! >= window_us) before++;
    const early = t_us[at]! < window_us;
    const from = since(bytes, before);
    const [over, moved] = early ? [window_us, bytes[at]!] : [t_us[at]! - t_us[from]!, bytes[at]! - bytes[from]!];
    out.push(over > 0 ? Math.max(0, (moved * 8) / over) : 0);
  }
  return out;
}
