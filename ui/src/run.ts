import { useEffect, useState } from "preact/hooks";
import { get, type Problem } from "./api";

/** Something that the server started and that takes its time. */
export interface Run {
  id: string;
  kind: "experiment" | "probe" | "lab" | "workload";
  request: Record<string, unknown>;
  experiment: string | null;
  end: End | null;
}

export interface End {
  exit_code: number;
  error: Problem | null;
}

/** One event: which it is, and its object. */
export interface Told {
  kind: string;
  data: unknown;
}

/** Follows the events of a run; a broken connection goes on where it was. */
export function useEvents<T>(run: Run | null, nothing: T, take: (heard: T, told: Told) => T): T {
  const [heard, setHeard] = useState(nothing);
  useEffect(() => {
    setHeard(nothing);
    if (!run) return;
    const source = new EventSource(`/api/v1/runs/${run.id}/events`);
    for (const kind of ["begin", "sample", "trial", "round", "line", "result", "end"]) {
      source.addEventListener(kind, (event) => {
        const data: unknown = JSON.parse((event as MessageEvent<string>).data);
        setHeard((heard) => take(heard, { kind, data }));
        if (kind === "end") source.close();
      });
    }
    return () => source.close();
  }, [run?.id]);
  return heard;
}

/** What a run says: its answer, its end, its lines and samples. */
export interface Answered<T> {
  result: T | null;
  end: End | null;
  lines: string[];
  samples: Sample[];
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

const NOTHING: Answered<never> = { result: null, end: null, lines: [], samples: [] };

export function useAnswer<T>(run: Run | null): Answered<T> {
  return useEvents<Answered<T>>(run, NOTHING, (heard, { kind, data }) => {
    if (kind === "result") return { ...heard, result: data as T };
    if (kind === "end") return { ...heard, end: data as End };
    if (kind === "line") return { ...heard, lines: [...heard.lines, (data as { text: string }).text] };
    return kind === "sample" ? { ...heard, samples: [...heard.samples, data as Sample] } : heard;
  });
}

/** Whether a run goes on: its answer may be here before it has ended, and until then the server starts no other one. */
export function useUnderWay(run: Run | null): boolean {
  const { end } = useAnswer(run);
  return run !== null && run.end === null && end === null;
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

/** The rate over the last 100 ms, or another window, Mbit/s: acknowledgements come in bursts. */
export function rates(t_us: ArrayLike<number>, bytes: ArrayLike<number>, window_us = 100_000): number[] {
  const out: number[] = [];
  for (let at = 0, before = 0; at < t_us.length; at++) {
    while (before < at - 1 && t_us[at]! - t_us[before + 1]! >= window_us) before++;
    // Before the first sample there was nothing.
    const early = t_us[at]! < window_us;
    const [since, moved] = early ? [t_us[at]!, bytes[at]!] : [t_us[at]! - t_us[before]!, bytes[at]! - bytes[before]!];
    out.push(since > 0 ? Math.max(0, (moved * 8) / since) : 0);
  }
  return out;
}
