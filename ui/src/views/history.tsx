import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { post } from "../api";
import { Token } from "../change";
import { iso, when } from "../format";
import { changed, onChanged } from "../host";
import { csv, keepFile } from "../keep";
import { Choice, Fetched, Section, Table, Text, Trouble, useDoing, useGet } from "../parts";
import { gained, isBetter, leadsTo, outcome, OUTCOMES } from "../outcome";
import { useQuery } from "../route";
import type { ExperimentSummary as Experiment, HistoryAnswer as Changes, JournalList as Journal } from "../schema";

/** Phases of a change that is in force. */
const UNDOABLE = new Set(["applied", "confirmed"]);
/** So many rows are drawn at first, and so many more each time one comes near their end. */
const ROWS = 60;

/** Every experiment of the journal, and every change of this host. */
export function History() {
  return (
    <>
      <h1>History</h1>
      <p class="lead">Times are in your own time zone, {Intl.DateTimeFormat().resolvedOptions().timeZone}.</p>
      <Experiments />
      <HostChanges />
    </>
  );
}

const ORDERS: Record<string, [string, (a: Experiment, b: Experiment) => number]> = {
  newest: ["the newest first", (a, b) => b.started_unix_us - a.started_unix_us],
  oldest: ["the oldest first", (a, b) => a.started_unix_us - b.started_unix_us],
  gain: ["the largest gain first", (a, b) => Math.abs(b.change_bp ?? 0) - Math.abs(a.change_bp ?? 0)],
  path: ["by path", (a, b) => a.target.localeCompare(b.target) || b.started_unix_us - a.started_unix_us],
  trials: ["the most trials first", (a, b) => b.trials - a.trials],
};

function Experiments() {
  const [journal, again] = useGet<Journal>("journal");
  return (
    <Section id="experiments" title="Experiments">
      <Fetched of={journal} again={again}>
        {({ experiments }) =>
          experiments.length === 0 ? (
            <p class="quiet">
              None yet. <a href="/experiment">Start one</a>, or run <code>windtunnel tune --lab adsl</code>.
            </p>
          ) : (
            <Listed all={experiments} />
          )
        }
      </Fetched>
    </Section>
  );
}

function Listed({ all }: { all: Experiment[] }) {
  const [{ q, sort, only }, set] = useQuery({ q: "", sort: "newest", only: "" });
  const [rows, setRows] = useState(ROWS);
  const texts = useMemo(
    () => new Map(all.map((one) => [one.id, [one.id, one.target, one.tunnel, one.workload, one.kind, one.answer, one.setting, one.comment, one.state, when(one.started_unix_us)].join(" ").toLowerCase()])),
    [all],
  );
  const shown = useMemo(() => {
    const words = q.toLowerCase().split(/\s+/).filter(Boolean);
    const found = all.filter((one) => (only === "" || outcome(one) === only) && words.every((word) => texts.get(one.id)?.includes(word)));
    return found.sort((ORDERS[sort] ?? ORDERS.newest!)[1]);
  }, [all, texts, q, sort, only]);
  const end = useRef<HTMLDivElement>(null);
  useEffect(() => setRows(ROWS), [q, sort, only]);
  useEffect(() => {
    if (!end.current) return;
    const seen = new IntersectionObserver((entries) => entries.some(({ isIntersecting }) => isIntersecting) && setRows((rows) => Math.min(rows + ROWS, shown.length)), { rootMargin: "600px" });
    seen.observe(end.current);
    return () => seen.disconnect();
  }, [shown, rows]);
  const keep = (): void => {
    const head = ["experiment", "kind", "begun", "path", "where", "workload", "verdict", "answer", "setting", "change_percent", "trials", "state", "comment"];
    const cells = shown.map((one) => [one.id, one.kind, iso(one.started_unix_us), one.target, one.tunnel, one.workload, outcome(one), one.answer, one.setting, one.change_bp == null ? null : one.change_bp / 100, one.trials, one.state, one.comment]);
    keepFile("experiments.csv", csv([head, ...cells]));
  };
  return (
    <>
      <div class="row">
        <Text label="Search" size="long" value={q} set={(q) => set({ q })} placeholder="adsl rwin page" />
        <Choice label="Verdict" value={only} set={(only) => set({ only }, "push")} options={[["", "any"], ...Object.entries(OUTCOMES)]} />
        <Choice label="Order" value={sort} set={(sort) => set({ sort }, "push")} options={Object.entries(ORDERS).map(([name, [title]]): [string, string] => [name, title])} />
        <button type="button" onClick={keep}>
          Download CSV
        </button>
      </div>
      <p class="quiet" role="status">
        {shown.length === all.length ? (all.length === 1 ? "1 experiment" : `${all.length} experiments`) : `${shown.length} of ${all.length} experiments`}
      </p>
      <Table
        label="Experiments, one a row"
        rows={shown.slice(0, rows)}
        columns={[
          {
            name: "Experiment",
            cell: ({ id, comment, target, kind }) => (
              <>
                <a href={leadsTo({ id, kind })} aria-label={`${target}: ${id}`}>
                  {target}
                </a>
                {comment && <span class="sub comment">{comment}</span>}
                <span class="sub mono">{id}</span>
              </>
            ),
          },
          { name: "Begun", cell: ({ started_unix_us }) => <span class="nowrap">{when(started_unix_us)}</span> },
          {
            name: "Verdict",
            cell: (one) => (
              <>
                <span class={`badge ${isBetter(one) ? "good" : ""}`}>{OUTCOMES[outcome(one)] ?? outcome(one)}</span>
                {one.answer && <span class="sub">{one.answer}</span>}
              </>
            ),
          },
          { name: "Gain", cell: (one) => <span class="nowrap">{gained(one)}</span> },
          { name: "Workload", cell: ({ workload, kind }) => workload ?? (kind === "traffic" ? "real traffic" : "–") },
          { name: "Where", cell: ({ tunnel }) => tunnel },
          { name: "Trials", cell: ({ trials }) => trials },
        ]}
      />
      <div ref={end} />
    </>
  );
}

function HostChanges() {
  const [changes, again] = useGet<Changes>("settings/history");
  useEffect(() => onChanged(again), []);
  return (
    <Section id="changes" title="Changes of this host">
      <Fetched of={changes} again={again}>
        {({ changes, hidden }) => (
          <>
            {hidden && <p class="quiet">Not all of them: {hidden}. “sudo windtunnel settings history” shows it.</p>}
            {changes.length > 0 ? (
              <Undoable changes={changes} />
            ) : (
              !hidden && (
                <p class="quiet">
                  None. <a href="/host">Host</a> plans and applies them.
                </p>
              )
            )}
          </>
        )}
      </Fetched>
    </Section>
  );
}

/** A time of the store, in the reader's own time zone. */
const local = (utc: string | null | undefined): string => (utc ? when(Date.parse(utc) * 1e3) : "?");

/** The changes with their old values' way back: one click undoes. */
function Undoable({ changes }: { changes: Changes["changes"] }) {
  const [busy, problem, run] = useDoing();
  return (
    <>
      <Token />
      {problem && <Trouble problem={problem} />}
      <Table
        label="Changes"
        rows={[...changes].reverse()}
        columns={[
          { name: "Change", cell: ({ id }) => id },
          { name: "Made", cell: ({ created }) => local(created) },
          { name: "What", cell: ({ changes }) => changes.join("; ") },
          {
            name: "State",
            cell: ({ phase, error }) => (
              <>
                {phase}
                {error && <span class="sub">{error}</span>}
              </>
            ),
          },
          {
            name: "Undo",
            cell: ({ id, phase }) =>
              UNDOABLE.has(phase ?? "") && (
                <button type="button" disabled={busy} onClick={() => run(() => post("settings/undo", { id }).then(changed))}>
                  Undo change {id}
                </button>
              ),
          },
        ]}
      />
    </>
  );
}
