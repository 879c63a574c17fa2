import { useMemo } from "preact/hooks";
import { Chart } from "./chart";
import { evidence, ms, rate, settings, times } from "./format";
import { Figure, Wide } from "./parts";

export interface Arm {
  label: string;
  settings: Record<string, unknown>;
  state: string;
  goodput_bps: number | null;
  ratio: number | null;
  low: number | null;
  high: number | null;
  model_low: number | null;
  model_high: number | null;
  evidence: number;
  needed: number | null;
  rounds: number;
  bad: number;
}

/** What `windtunnel report --json` prints. */
export interface Report {
  id: string;
  target: string;
  tunnel: string;
  path: { rtt_us: number; pmtu: number; bdp_bytes: number };
  rounds: number;
  trials: number;
  verdict: { kind: string; headline: string; details: string[]; settings: Record<string, unknown> };
  plateau: { knob: string; epsilon: number; curve: { x: number; level: unknown; goodput_bps: number | null; trials_bps: number[] }[] } | null;
  physical_goodput_bps: number | null;
  arms: Arm[];
  warnings: string[];
  next: string[];
}

const STATES: Record<string, string> = { open: "not shown", dropped: "behind, left out", fails: "fails, left out" };

/** A finished experiment. */
export function Verdict({ report }: { report: Report }) {
  return (
    <>
      <section class={`verdict ${report.verdict.kind}`} aria-labelledby="verdict">
        <h2 id="verdict">{report.verdict.headline}</h2>
        {report.verdict.details.map((detail) => (
          <p>{detail}</p>
        ))}
      </section>
      {report.warnings.length > 0 && (
        <section aria-labelledby="mind">
          <h2 id="mind">Mind</h2>
          <ul>
            {report.warnings.map((warning) => (
              <li>{warning}</li>
            ))}
          </ul>
        </section>
      )}
      <dl class="figures">
        <Figure name="RTT">{ms(report.path.rtt_us)}</Figure>
        <Figure name="PMTU">{report.path.pmtu} bytes</Figure>
        <Figure name="Physical limit">{rate(report.physical_goodput_bps)}</Figure>
        <Figure name="Rounds, trials">
          {report.rounds}, {report.trials}
        </Figure>
      </dl>
      <Settings report={report} />
      <Plateau report={report} />
      {report.next.length > 0 && (
        <section aria-labelledby="next">
          <h2 id="next">Next</h2>
          <ul>
            {report.next.map((next) => (
              <li>{next}</li>
            ))}
          </ul>
        </section>
      )}
    </>
  );
}

/** The interval that the random order proves, or else the model's, which claims nothing. */
function interval(arm: Arm): string {
  if (arm.low !== null && arm.high !== null) return `${times(arm.low)} to ${times(arm.high)}`;
  if (arm.model_low !== null && arm.model_high !== null) return `~ ${times(arm.model_low)} to ${times(arm.model_high)}`;
  return "open";
}

function Settings({ report }: { report: Report }) {
  const needed = report.arms.find((arm) => arm.needed !== null)?.needed;
  return (
    <section aria-labelledby="arms">
      <h2 id="arms">Settings</h2>
      <Wide label="Settings compared">
        <table class="stack">
          <thead>
            <tr>
              <th scope="col">Setting</th>
              <th scope="col">Goodput</th>
              <th scope="col">Ratio</th>
              <th scope="col">95 % interval</th>
              <th scope="col">Evidence{needed ? `, needs ${evidence(needed)}` : ""}</th>
              <th scope="col">Rounds</th>
              <th scope="col">Shown</th>
            </tr>
          </thead>
          <tbody>
            {report.arms.map((arm) => (
              <tr key={arm.label}>
                <th scope="row">
                  {arm.label}
                  {arm.label.startsWith(settings(arm.settings)) || <span class="sub mono">{settings(arm.settings)}</span>}
                </th>
                <td data-name="Goodput">{rate(arm.goodput_bps)}</td>
                <td data-name="Ratio">{times(arm.ratio)}</td>
                <td data-name="95 % interval">{arm.state === "current" ? "–" : interval(arm)}</td>
                <td data-name="Evidence">{arm.state === "current" ? "–" : evidence(arm.evidence)}</td>
                <td data-name="Rounds">{arm.rounds}</td>
                <td data-name="Shown">
                  <span class={`badge ${arm.state === "faster" ? "good" : ""}`}>{STATES[arm.state] ?? arm.state}</span>
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </Wide>
      <p class="quiet">An interval marked ~ is the model's: it shows how large an effect is, and claims nothing.</p>
    </section>
  );
}

/** Goodput against the levels of the knob that has an order. */
function Plateau({ report }: { report: Report }) {
  const data = useMemo(() => {
    const points = (report.plateau?.curve ?? []).filter((point) => point.goodput_bps !== null && Number.isFinite(point.x));
    points.sort((a, b) => a.x - b.x);
    const limit = report.physical_goodput_bps;
    const lines = [{ label: "Median goodput", values: points.map((point) => (point.goodput_bps ?? 0) / 1e6) }];
    const reference = limit === null ? [] : [{ label: "Physical limit", reference: true, values: points.map(() => limit / 1e6) }];
    return { x: points.map((point) => point.x / 1024), lines: [...lines, ...reference] };
  }, [report]);
  if (!report.plateau || data.x.length < 2) return null;
  const { knob } = report.plateau;
  return (
    <section aria-labelledby="plateau">
      <h2 id="plateau">Plateau of {knob}</h2>
      <Chart
        label={`Median goodput by ${knob}, ${data.x.length} levels`}
        logX
        xLabel={`${knob}, KiB`}
        yLabel="Goodput, Mbit/s"
        format={(value) => value.toFixed(value < 10 ? 2 : 1)}
        {...data}
      />
    </section>
  );
}
