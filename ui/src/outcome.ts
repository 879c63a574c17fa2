import type { ExperimentSummary as Experiment } from "./schema";

/** What came of an experiment, in a word. */
export const OUTCOMES: Record<string, string> = { set: "faster", calmer: "less delay", keep: "keep", gone: "gain is gone", undecided: "no answer yet", unshown: "no gain is shown", logged: "logged", failed: "failed", running: "running", aborted: "aborted" };

/** An older journal says less: then it is told by the kind of its verdict, or by how far the experiment came. */
export function outcome({ action, verdict, state, kind }: Pick<Experiment, "action" | "verdict" | "state" | "kind">): string {
  if (kind === "test" && verdict) return "logged";
  if (verdict === "gone") return "gone";
  if (kind === "proof" && verdict === "no-difference") return "unshown";
  // What is set though nothing is shown to be faster has less delay at the same speed.
  if (action === "set" && verdict === "no-difference") return "calmer";
  if (action) return action;
  if (verdict) return verdict === "faster" ? "set" : "undecided";
  return state === "running" ? "running" : "aborted";
}

/** Whether something is shown to be better. */
export const isBetter = (of: Parameters<typeof outcome>[0]): boolean => ["set", "calmer"].includes(outcome(of));

/** How much is gained: of what is better a time that gets shorter is a gain, too. */
export const gained = (of: Experiment): string => gain(of.change_bp && isBetter(of) ? Math.abs(of.change_bp) : of.change_bp);

/** How much more or less, from hundredths of a percent. */
export const gain = (change_bp: number | null | undefined): string => (change_bp === null || change_bp === undefined ? "–" : `${change_bp > 0 ? "+" : "−"}${(Math.abs(change_bp) / 100).toFixed(1)} %`);

/** Where an experiment is shown. */
export function leadsTo({ id, kind }: { id: string; kind?: string }): string {
  const view = kind === "traffic" || kind === "test" ? { traffic: "traffic", test: "tests" }[kind] : "report";
  return `/${view}/${encodeURIComponent(id)}`;
}
