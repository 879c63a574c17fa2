import { useState } from "preact/hooks";
import { post } from "../api";
import { Token } from "../change";
import { when } from "../format";
import { Fetched, Section, Table, Trouble, useDoing, useGet } from "../parts";
import { Verdict, type Report } from "../report";

export interface Journal {
  experiments: { id: string; started_unix_us: number; state: string; target: string; tunnel: string; trials: number; comment: string }[];
}

interface Changes {
  changes: { id: string; created: string; phase: string; changes: string[]; error: string | null }[];
}

/** Phases of a change that is in force. */
const UNDOABLE = new Set(["applied", "confirmed"]);

/** Every experiment of the journal, and every change of this host. */
export function History() {
  const [chosen, setChosen] = useState<string | null>(null);
  if (chosen !== null) return <Past id={chosen} back={() => setChosen(null)} />;
  return (
    <>
      <h1>History</h1>
      <Experiments choose={setChosen} />
      <HostChanges />
    </>
  );
}

function Past({ id, back }: { id: string; back: () => void }) {
  const [report, again] = useGet<Report>(`reports/${encodeURIComponent(id)}`);
  return (
    <>
      <h1>Experiment of the past</h1>
      <p class="lead mono">{id}</p>
      <div class="buttons">
        <button type="button" onClick={back}>
          Back to all
        </button>
        <a class="button" href={`/analysis?of=${encodeURIComponent(id)}`}>
          Analyse it
        </a>
      </div>
      <Fetched of={report} again={again}>
        {(report) => (report.arms ? <Verdict report={report} /> : <p>The page draws no picture of this one: windtunnel report {id} tells it.</p>)}
      </Fetched>
    </>
  );
}

function Experiments({ choose }: { choose: (id: string) => void }) {
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
            <Table
              label="Experiments"
              rows={experiments}
              columns={[
                {
                  name: "Experiment",
                  cell: ({ id, comment }) => (
                    <>
                      <button type="button" class="link" onClick={() => choose(id)}>
                        {id}
                      </button>
                      {comment && <span class="sub">{comment}</span>}
                    </>
                  ),
                },
                { name: "Begun", cell: ({ started_unix_us }) => when(started_unix_us) },
                { name: "Path", cell: ({ target, tunnel }) => `${target} (${tunnel})` },
                { name: "Trials", cell: ({ trials }) => trials },
                { name: "State", cell: ({ state }) => state },
              ]}
            />
          )
        }
      </Fetched>
    </Section>
  );
}

function HostChanges() {
  const [changes, again] = useGet<Changes>("settings/history");
  return (
    <Section id="changes" title="Changes of this host">
      <Fetched of={changes} again={again}>
        {({ changes }) =>
          changes.length === 0 ? (
            <p class="quiet">
              None. <a href="/host">Host</a> plans and applies them.
            </p>
          ) : (
            <Undoable changes={changes} again={again} />
          )
        }
      </Fetched>
    </Section>
  );
}

/** The changes with their old values' way back: one click undoes. */
function Undoable({ changes, again }: { changes: Changes["changes"]; again: () => void }) {
  const [busy, problem, run] = useDoing();
  return (
    <>
      <Token />
      {problem && <Trouble problem={problem} />}
      <Table
        label="Changes"
        rows={changes}
        columns={[
          { name: "Change", cell: ({ id }) => id },
          { name: "Made", cell: ({ created }) => created.replace("T", " ").replace("Z", " UTC") },
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
              UNDOABLE.has(phase) && (
                <button type="button" disabled={busy} onClick={() => run(() => post("settings/undo", { id }).then(again))}>
                  Undo change {id}
                </button>
              ),
          },
        ]}
      />
    </>
  );
}
