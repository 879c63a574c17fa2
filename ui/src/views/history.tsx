import { useState } from "preact/hooks";
import { post } from "../api";
import { Token, useDoing } from "../change";
import { when } from "../format";
import { Fetched, Trouble, useGet, Wide } from "../parts";
import { Verdict, type Report } from "../report";

interface Journal {
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
      </div>
      <Fetched of={report} again={again}>
        {(report) => (report.arms ? <Verdict report={report} /> : <p>This is a screen of many knobs: windtunnel report {id} tells it.</p>)}
      </Fetched>
    </>
  );
}

function Experiments({ choose }: { choose: (id: string) => void }) {
  const [journal, again] = useGet<Journal>("journal");
  return (
    <section aria-labelledby="experiments">
      <h2 id="experiments">Experiments</h2>
      <Fetched of={journal} again={again}>
        {({ experiments }) =>
          experiments.length === 0 ? (
            <p class="quiet">
              None yet. <a href="/experiment">Start one</a>, or run <code>windtunnel tune --lab adsl</code>.
            </p>
          ) : (
            <Wide label="Experiments">
              <table class="stack">
                <thead>
                  <tr>
                    <th scope="col">Experiment</th>
                    <th scope="col">Begun</th>
                    <th scope="col">Path</th>
                    <th scope="col">Trials</th>
                    <th scope="col">State</th>
                  </tr>
                </thead>
                <tbody>
                  {experiments.map((experiment) => (
                    <tr key={experiment.id}>
                      <th scope="row">
                        <button type="button" class="link" onClick={() => choose(experiment.id)}>
                          {experiment.id}
                        </button>
                        {experiment.comment && <span class="sub">{experiment.comment}</span>}
                      </th>
                      <td data-name="Begun">{when(experiment.started_unix_us)}</td>
                      <td data-name="Path">
                        {experiment.target} ({experiment.tunnel})
                      </td>
                      <td data-name="Trials">{experiment.trials}</td>
                      <td data-name="State">{experiment.state}</td>
                    </tr>
                  ))}
                </tbody>
              </table>
            </Wide>
          )
        }
      </Fetched>
    </section>
  );
}

function HostChanges() {
  const [changes, again] = useGet<Changes>("settings/history");
  return (
    <section aria-labelledby="changes">
      <h2 id="changes">Changes of this host</h2>
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
    </section>
  );
}

/** The changes with their old values' way back: one click undoes. */
function Undoable({ changes, again }: { changes: Changes["changes"]; again: () => void }) {
  const [busy, problem, run] = useDoing();
  return (
    <>
      <Token />
      {problem && <Trouble problem={problem} />}
      <Wide label="Changes">
        <table class="stack">
          <thead>
            <tr>
              <th scope="col">Change</th>
              <th scope="col">Made</th>
              <th scope="col">What</th>
              <th scope="col">State</th>
              <th scope="col">Undo</th>
            </tr>
          </thead>
          <tbody>
            {changes.map((change) => (
              <tr key={change.id}>
                <th scope="row">{change.id}</th>
                <td data-name="Made">{change.created.replace("T", " ").replace("Z", " UTC")}</td>
                <td data-name="What">{change.changes.join("; ")}</td>
                <td data-name="State">
                  {change.phase}
                  {change.error && <span class="sub">{change.error}</span>}
                </td>
                <td>
                  {UNDOABLE.has(change.phase) && (
                    <button type="button" disabled={busy} onClick={() => run(() => post("settings/undo", { id: change.id }).then(again))}>
                      Undo change {change.id}
                    </button>
                  )}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </Wide>
    </>
  );
}
