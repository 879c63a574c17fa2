import { useState } from "preact/hooks";
import { remove } from "../api";
import { Token } from "../change";
import { ComparedControls, ComparedStacks, isControls, isStacks } from "../compared";
import { AsCommand, json, keepFile } from "../keep";
import { Fetched, Trouble, useDoing, useGet } from "../parts";
import { Verdict, type Report } from "../report";
import { go } from "../route";

/** An experiment of the journal, by its name in the address. */
export function Past({ part: id }: { part: string }) {
  const [report, again] = useGet<Report>(`reports/${encodeURIComponent(id)}`);
  return (
    <>
      <h1>Report</h1>
      <p class="lead mono">{id}</p>
      {report.state === "done" && <Actions id={id} report={report.data} />}
      <Fetched of={report} again={again}>
        {(report) =>
          report.arms ? (
            <Verdict report={report} />
          ) : isControls(report) ? (
            <ComparedControls report={report} />
          ) : isStacks(report) ? (
            <ComparedStacks report={report} />
          ) : (
            <p>
              The page has no picture of this kind of experiment. <a href={`/api/v1/reports/${encodeURIComponent(id)}/html`}>Download its report</a>, or run <code>windtunnel report {id}</code>.
            </p>
          )
        }
      </Fetched>
    </>
  );
}

/** What can be done with a report. */
function Actions({ id, report }: { id: string; report: Report }) {
  const [sure, setSure] = useState(false);
  const [busy, problem, run] = useDoing();
  const file = (form: string): string => `/api/v1/reports/${encodeURIComponent(id)}/${form}`;
  return (
    <>
      <div class="buttons">
        <a class="button" href={`/analysis?of=${encodeURIComponent(id)}`}>
          Analyse it
        </a>
        <a class="button" href={file("html")} download={`${id}.html`}>
          Download HTML
        </a>
        {report.arms && (
          <a class="button" href={file("csv")} download={`${id}.csv`}>
            Download CSV
          </a>
        )}
        <button type="button" onClick={() => keepFile(`${id}.json`, json(report))}>
          Download JSON
        </button>
        {sure ? (
          <button type="button" class="danger" disabled={busy} onClick={() => run(() => remove(`journal/${encodeURIComponent(id)}`).then(() => go("/history")))}>
            Delete it for good
          </button>
        ) : (
          <button type="button" onClick={() => setSure(true)}>
            Delete …
          </button>
        )}
      </div>
      {sure && <Token what="Deleting an experiment" />}
      {problem && <Trouble problem={problem} />}
      <AsCommand text={`windtunnel report ${id} --full${report.run?.command ? `\n# To run the same again:\n${report.run.command}` : ""}`} />
    </>
  );
}
