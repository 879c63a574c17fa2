import { useEffect, useState } from "preact/hooks";
import { remove } from "../api";
import { Token } from "../change";
import { ComparedControls, ComparedStacks, isControls, isStacks } from "../compared";
import { AsCommand, json, keepFile } from "../keep";
import { Fetched, Trouble, useDoing, useGet } from "../parts";
import { Verdict, type Report } from "../report";
import { leadsTo } from "../outcome";
import { isProof, Proved } from "../proof";
import { go } from "../route";

/** An experiment of the journal, by its name in the address. */
export function Past({ part: id }: { part: string }) {
  const [report, again] = useGet<Report>(`reports/${encodeURIComponent(id)}`);
  // What has a view of its own is shown there.
  const elsewhere = report.state === "done" && "guardrails" in report.data;
  useEffect(() => {
    if (elsewhere) go(leadsTo({ id, kind: "traffic" }), "replace");
  }, [elsewhere]);
  // A beginning of a name, or `last`, is another experiment's tomorrow.
  const whole = report.state === "done" && "id" in report.data && typeof report.data.id === "string" && (id === "last" || report.data.id.startsWith(id)) ? report.data.id : id;
  useEffect(() => {
    if (!elsewhere && whole !== id) go(`/report/${encodeURIComponent(whole)}`, "replace");
  }, [elsewhere, whole]);
  if (elsewhere || whole !== id) return null;
  return (
    <>
      <h1>Report</h1>
      <p class="lead mono">{id}</p>
      {report.state === "done" && <Actions id={id} report={report.data} files />}
      <Fetched of={report} again={again}>
        {(report) => <Answer id={id} report={report} />}
      </Fetched>
    </>
  );
}

/** What came of an experiment of any kind. */
export function Answer({ id, report }: { id: string; report: Report }) {
  if (report.arms) return <Verdict report={report} />;
  if (isControls(report)) return <ComparedControls report={report} />;
  if (isProof(report)) return <Proved report={report} />;
  if (isStacks(report)) return <ComparedStacks report={report} />;
  return (
    <p>
      The page has no picture of this kind of experiment. <a href={`/api/v1/reports/${encodeURIComponent(id)}/html`}>Download its report</a>, or run <code>windtunnel report {id}</code>.
    </p>
  );
}

/** What can be done with a report. `files`: whether there are pages of it, and, of what isn't a proof, charts to analyse. */
export function Actions({ id, report, files = false }: { id: string; report: object; files?: boolean }) {
  const [sure, setSure] = useState(false);
  const [busy, problem, run] = useDoing();
  const file = (form: string): string => `/api/v1/reports/${encodeURIComponent(id)}/${form}`;
  return (
    <>
      <div class="buttons">
        {files && !isProof(report) && (
          <a class="button" href={`/analysis?of=${encodeURIComponent(id)}`}>
            Analyse it
          </a>
        )}
        {files && (
          <a class="button" href={file("html")} download={`${id}.html`}>
            Download HTML
          </a>
        )}
        {files && "arms" in report && (
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
      {files && <AsCommand text={`windtunnel report ${id} --full${typed(report) ? `\n# To run the same again:\n${typed(report)}` : ""}`} />}
    </>
  );
}

/** What was typed to begin it, if that is known. */
const typed = (report: object): string | null | undefined => (report as Partial<Report>).run?.command;
