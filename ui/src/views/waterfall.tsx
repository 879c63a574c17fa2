import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { ms, size } from "../format";
import { AsCommand, csv, keepFile, word } from "../keep";
import { Choice, Fetched, Figure, Section, useGet } from "../parts";
import { css, escape, fileName, keepSvg, svg } from "../picture";
import { short, type Arm, type Report } from "../report";
import { useQuery } from "../route";
import type { ObjectTime, ReportTrial as Trial } from "../schema";

/** How a page came, object by object, with two settings of an experiment over each other. */
export function Waterfall({ part: id }: { part: string }) {
  const [report, again] = useGet<Report>(`reports/${encodeURIComponent(id)}`);
  return (
    <>
      <h1>Page waterfall</h1>
      <p class="lead">
        How the page came, object by object, before and after. From <a href={`/report/${encodeURIComponent(id)}`}>the report</a> of <span class="mono">{id}</span>.
      </p>
      <Fetched of={report} again={again}>
        {(report) => (report.arms?.some((_, arm) => middle(report, arm)) ? <Both report={report} /> : <p class="note">No page was loaded in this experiment, or no load came to its end: there is nothing to draw. Experiments with the workload “page” have it.</p>)}
      </Fetched>
    </>
  );
}

/** The load in the middle of a setting's whole ones. */
function middle(report: Report, arm: number): Trial | null {
  const whole = report.trial_table.filter((trial) => trial.arm === arm && trial.status === "completed" && (trial.measures?.objects?.length ?? 0) > 0);
  whole.sort((a, b) => a.elapsed_us - b.elapsed_us);
  return whole[(whole.length - 1) >> 1] ?? null;
}

/** Whether it is known how long requests of a load waited in the browser, which opens six connections to a server of HTTP/1.1. */
const queued = (trial: Trial | null): boolean => trial?.measures?.objects?.some((one) => one.sent_us != null) ?? false;

/** The setting that won, or else leads. */
function leader(report: Report): number {
  const ranked = report.arms.map((arm, place) => ({ arm, place })).filter(({ arm, place }) => place > 0 && arm.ratio != null && middle(report, place));
  ranked.sort((a, b) => Number(b.arm.state === "faster") - Number(a.arm.state === "faster") || (b.arm.ratio ?? 0) - (a.arm.ratio ?? 0));
  return ranked[0]?.place ?? 0;
}

function Both({ report }: { report: Report }) {
  const [{ before, after }, set] = useQuery({ before: "0", after: String(leader(report)) });
  const options = report.arms.flatMap((arm, place): [string, string][] => (middle(report, place) ? [[String(place), name(arm)]] : []));
  const shown = [before, after].map((place) => ({ arm: report.arms[Number(place)], trial: middle(report, Number(place)) }));
  const most = Math.max(1, ...shown.map(({ trial }) => trial?.elapsed_us ?? 0));
  const [one, other] = shown.map(({ trial }) => trial?.elapsed_us);
  return (
    <>
      <div class="row">
        <Choice label="Before" size="long" value={before} set={(before) => set({ before }, "push")} options={options} />
        <Choice label="After" size="long" value={after} set={(after) => set({ after }, "push")} options={options} />
      </div>
      {one !== undefined && other !== undefined && before !== after && (
        <dl class="figures">
          <Figure name="The load in the middle, before">{ms(one)}</Figure>
          <Figure name="after">{ms(other)}</Figure>
          <Figure name="difference of these two">{`${other <= one ? "−" : "+"}${ms(Math.abs(other - one))}`}</Figure>
        </dl>
      )}
      <p class="quiet">
        Each row is one object: {shown.some(({ trial }) => queued(trial)) && "the thin line waits in the browser for a connection, "}the light part waits for its first byte, the dark part is its bytes. Two loads show where the time goes; what is proven stands in <a href={`/report/${encodeURIComponent(report.id)}`}>the report</a>.
      </p>
      {shown.map(({ arm, trial }, place) => arm && trial && (place === 0 || before !== after) && <Loaded key={`${place} ${trial.trial}`} id={place === 0 ? "before" : "after"} experiment={report.id} arm={arm} trial={trial} most={most} />)}
      <AsCommand text={`windtunnel report ${word(report.id)} --html waterfall.html`} />
    </>
  );
}

const name = (arm: Arm): string => (arm.state === "current" && !arm.label.startsWith("current") ? `current (${arm.label})` : arm.label);

const ROW = 15;
/** So wide is what names an object. */
const NAMES = 96;

/** One load, drawn as wide as there is room. */
function Loaded({ id, experiment, arm, trial, most }: { id: string; experiment: string; arm: Arm; trial: Trial; most: number }) {
  const box = useRef<HTMLDivElement>(null);
  const [width, setWidth] = useState(720);
  const [look, setLook] = useState(0);
  useEffect(() => {
    if (!box.current) return;
    const sized = new ResizeObserver(([entry]) => entry && setWidth(Math.max(260, Math.floor(entry.contentRect.width))));
    sized.observe(box.current);
    const scheme = matchMedia("(prefers-color-scheme: dark)");
    const redraw = (): void => setLook((look) => look + 1);
    scheme.addEventListener("change", redraw);
    return () => {
      sized.disconnect();
      scheme.removeEventListener("change", redraw);
    };
  }, []);
  const objects = trial.measures?.objects ?? [];
  const label = `How the page came with ${short(arm)}: ${objects.length} objects in ${ms(trial.elapsed_us)}`;
  const drawn = useMemo(() => draw(label, trial, most, width), [label, trial, most, width, look]);
  const sent = queued(trial);
  const head = ["object", "connection", "asked_ms", ...(sent ? ["sent_ms"] : []), "first_byte_ms", "done_ms", "bytes"];
  const row = (one: ObjectTime): (number | string)[] => [one.object + 1, one.connection + 1, one.asked_us / 1e3, ...(sent ? [one.sent_us == null ? "" : one.sent_us / 1e3] : []), one.first_byte_us / 1e3, one.done_us / 1e3, one.bytes];
  const table = [head, ...objects.map(row)];
  return (
    <Section id={id} title={`${id === "before" ? "Before" : "After"}: ${short(arm)}, ${ms(trial.elapsed_us)}`}>
      <figure class="chart">
        <div ref={box} class="waterfall" dangerouslySetInnerHTML={{ __html: drawn }} />
        <figcaption class="keep">
          <button type="button" class="link" aria-label={`SVG: ${label}`} onClick={() => keepSvg(`${experiment} ${id}`, drawn)}>
            SVG
          </button>{" "}
          <button type="button" class="link" aria-label={`CSV: ${label}`} onClick={() => keepFile(`${fileName(`${experiment} ${id}`)}.csv`, csv(table))}>
            CSV
          </button>
        </figcaption>
      </figure>
    </Section>
  );
}

function draw(label: string, trial: Trial, most: number, width: number): string {
  const objects = trial.measures?.objects ?? [];
  const [head, right] = [34, 14];
  const bottom = head + ROW * objects.length;
  const x = (us: number): number => NAMES + ((width - NAMES - right) * us) / most;
  const step = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000, 60_000].find((step) => most / 1e3 / step <= (width < 500 ? 4 : 8)) ?? 600_000;
  const [ink, quiet, grid, wait, bytes] = ["--text", "--text-2", "--grid", "--line-2", "--line-1"].map(css);
  const parts: string[] = [];
  for (let at = 0; at * 1e3 <= most; at += step) {
    parts.push(`<line x1="${x(at * 1e3).toFixed(1)}" x2="${x(at * 1e3).toFixed(1)}" y1="${head}" y2="${bottom}" stroke="${grid}"/>`, `<text x="${x(at * 1e3).toFixed(1)}" y="${bottom + 16}" text-anchor="middle" fill="${quiet}">${at} ms</text>`);
  }
  objects.forEach((one, row) => {
    const top = head + ROW * row;
    const bar = (from: number, to: number, fill: string | undefined, more: string, height = ROW - 5): string => `<rect x="${x(from).toFixed(1)}" y="${top + 3 + (ROW - 5 - height) / 2}" width="${Math.max(1, x(to) - x(from)).toFixed(1)}" height="${height}" fill="${fill}"${more}/>`;
    const sent = one.sent_us ?? one.asked_us;
    parts.push(
      `<g><title>${escape(`Object ${one.object + 1}, connection ${one.connection + 1}: asked at ${ms(one.asked_us)}, ${one.sent_us == null ? "" : `sent at ${ms(one.sent_us)}, `}first byte at ${ms(one.first_byte_us)}, done at ${ms(one.done_us)}`)}</title>`,
      `<text x="${NAMES - 8}" y="${top + 11}" text-anchor="end" fill="${ink}" font-size="11">${one.object + 1}: ${escape(size(one.bytes))}</text>`,
      ...(sent > one.asked_us ? [bar(one.asked_us, sent, quiet, "", 2)] : []),
      bar(sent, one.first_byte_us, wait, ' opacity="0.45"'),
      bar(one.first_byte_us, one.done_us, bytes, ""),
      "</g>",
    );
  });
  const end = x(trial.elapsed_us).toFixed(1);
  parts.push(`<line x1="${end}" x2="${end}" y1="${head}" y2="${bottom}" stroke="${ink}" stroke-dasharray="5 4"/>`);
  return svg(width, bottom + 26, label, parts);
}
