import type { ComponentChildren } from "preact";
import { post, remove } from "../api";
import { ComparedControls, ComparedStacks, isControls, isStacks, type Controls, type Stacks } from "../compared";
import { duration } from "../format";
import { AsCommand } from "../keep";
import { leadsTo } from "../outcome";
import { Section, Trouble, useDoing } from "../parts";
import { useQuery } from "../route";
import { forgotten, useEvents, useRun, useUnderWay, type End, type Run } from "../run";
import { Running } from "./experiment";

/** Names with a blank or a comma between them; a comma before a setting (`bursts:count=1,pause=0ms`) belongs to it. */
export const names = (text: string): string[] => text.split(/\s*,(?![^\s,:]*=)\s*|\s+/).filter(Boolean);

/** What is asked for, as a request and as a command. */
export interface Asked {
  /** Where it is posted to. */
  path: "cc/comparisons" | "stacks/comparisons";
  request: Record<string, unknown>;
  /** Whether all is said. */
  complete: boolean;
  text: string;
}

/** A section that begins a comparison, and says how it goes and what came of it. */
export function Compare({ asked, button, children }: { asked: Asked; button: string; children: ComponentChildren }) {
  const [{ run: named }, set] = useQuery({ run: "" });
  const [run, setRun] = useRun(named || null);
  const [asking, problem, doing] = useDoing();
  const known = run === "gone" ? null : run;
  const busy = [useUnderWay(known), asking].some(Boolean);
  return (
    <>
      <Section id="begin" title="Compare over a path of the lab">
        <form
          onSubmit={(event) => {
            event.preventDefault();
            doing(() =>
              post<Run>(asked.path, asked.request).then((run) => {
                setRun(run);
                set({ run: run.id }, "push");
              }),
            );
          }}
        >
          {children}
          <div class="buttons">
            <button type="submit" class="primary" disabled={busy || !asked.complete}>
              {button}
            </button>
          </div>
          <AsCommand text={asked.text} />
        </form>
        {problem && <Trouble problem={problem} />}
        {run === "gone" && (
          <p class="note">
            {forgotten("comparison")} What was measured is in the <a href="/history">history</a>.
          </p>
        )}
        {!named && <Running kind="comparison" name="A comparison" to={({ id, request }) => `/${"stacks" in (request as object) ? "stacks" : "controls"}?run=${id}`} />}
      </Section>
      {known && <Compared key={known.id} run={known} />}
    </>
  );
}

interface Trial {
  round: number;
  label: string;
  workload: string;
  status: string;
  counts: boolean;
  figure: string | null;
  notes: string[];
}

interface Heard {
  begin: { rounds: number; trials: number; expected_s: number } | null;
  trials: Trial[];
  result: ((Controls | Stacks) & { id?: string }) | null;
  end: End | null;
}

const NOTHING: Heard = { begin: null, trials: [], result: null, end: null };

function Compared({ run }: { run: Run }) {
  const { begin, trials, result, end } = useEvents<Heard>(run, NOTHING, (heard, { kind, data }) => {
    if (kind === "begin") return { ...heard, begin: data as Heard["begin"] };
    if (kind === "trial") return { ...heard, trials: [...heard.trials, data as Trial] };
    if (kind === "result") return { ...heard, result: data as Heard["result"] };
    return kind === "end" ? { ...heard, end: data as End } : heard;
  });
  const [, problem, doing] = useDoing();
  const done = trials.filter(({ counts }) => counts).length;
  const last = trials.at(-1);
  return (
    <>
      {!end && (
        <section class="progress" aria-label="Progress">
          <p aria-live="polite">{begin ? `${done} of ${begin.trials} trials, round ${last?.round ?? 1} of ${begin.rounds}; ${duration(begin.expected_s)} in all` : "The path is built, and its RTT is measured first …"}</p>
          {begin ? <progress max={begin.trials} value={done} aria-label="Trials" /> : <progress aria-label="Preparing" />}
          {last && (
            <p>
              Last trial: {last.label}, {last.workload}, <strong>{last.figure ?? last.status}</strong>
              {!last.counts && ` (it says nothing and is run again: ${last.notes.join("; ")})`}
            </p>
          )}
          <div class="buttons">
            <button type="button" onClick={() => doing(() => remove(`runs/${run.id}`))}>
              Stop, and keep the rounds that are complete
            </button>
          </div>
        </section>
      )}
      {problem && <Trouble problem={problem} />}
      {end?.error && <Trouble problem={end.error} />}
      {result && isControls(result) && <ComparedControls report={result} />}
      {result && isStacks(result) && <ComparedStacks report={result} />}
      {result?.id && (
        <p class="quiet">
          Kept as <a href={leadsTo({ id: result.id, kind: "compare" })}>{result.id}</a>.
        </p>
      )}
    </>
  );
}
