import { useMemo } from "preact/hooks";
import { Chart } from "./chart";
import { axis, evidence, figure, mbit, ms, onAxis, rate, settings, times, title, value } from "./format";
import { Figure, Section, Sentences, Table } from "./parts";
import type { ReportArm as Arm, TuneReport as Report } from "./schema";

export type { ReportArm as Arm, TuneReport as Report } from "./schema";

const STATES: Record<string, string> = { open: "not proven", "not-set": "couldn't be set", behind: "left out (estimate)", failing: "fails, left out" };

/** What the fastest of those settings asks for that were shown to be faster, if there are any. */
function faster({ arms }: Report): Record<string, unknown> {
  const shown = arms.filter((arm) => arm.state === "faster").sort((a, b) => (b.ratio ?? 0) - (a.ratio ?? 0));
  return shown[0]?.settings ?? {};
}

/** A finished experiment. */
export function Verdict({ report }: { report: Report }) {
  const plans = Object.entries(faster(report));
  return (
    <>
      <Section id="verdict" class={`verdict ${report.verdict.kind}`} title={report.verdict.answer?.what ?? report.verdict.headline}>
        {report.verdict.answer?.lines.slice(1).map((line) => (
          <p>{line}</p>
        ))}
        {report.verdict.details.length > 0 && (
          <details>
            <summary>What this rests on</summary>
            {report.verdict.details.map((detail) => (
              <p>{detail}</p>
            ))}
          </details>
        )}
        {plans.length > 0 && (
          <div class="buttons">
            {plans.map(([knob, level]) => (
              <a key={knob} class="button" href={`/host?${new URLSearchParams({ change: knob, to: value(level) })}`}>
                Plan {knob}={value(level)} on this host
              </a>
            ))}
          </div>
        )}
      </Section>
      <Sentences id="mind" title="Mind" of={report.warnings} />
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
      <Sentences id="next" title="Next" of={report.next} />
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
  const unless = (arm: Arm, text: string): string => (arm.state === "current" ? "–" : text);
  return (
    <Section id="arms" title="Settings">
      <Table
        label="Settings compared"
        rows={report.arms}
        columns={[
          {
            name: "Setting",
            cell: (arm) => (
              <>
                {arm.label}
                {arm.label.startsWith(settings(arm.settings)) || <span class="sub mono">{settings(arm.settings)}</span>}
              </>
            ),
          },
          { name: title(report.measured), cell: (arm) => figure(report.measured, arm.figure) },
          { name: "Ratio", cell: (arm) => times(arm.ratio) },
          { name: "95 % interval", cell: (arm) => unless(arm, interval(arm)) },
          { name: "Evidence", cell: (arm) => unless(arm, `${evidence(arm.evidence)} of ${evidence(arm.needed ?? 1)}`) },
          { name: "Rounds", cell: (arm) => arm.rounds },
          { name: "Shown", cell: (arm) => <span class={`badge ${arm.state === "faster" ? "good" : ""}`}>{STATES[arm.state] ?? arm.state}</span> },
        ]}
      />
      <p class="quiet">~ marks an estimate; it is not proof.</p>
    </Section>
  );
}

/** Goodput against the levels of the knob that has an order. */
function Plateau({ report }: { report: Report }) {
  const data = useMemo(() => {
    const points = (report.plateau?.curve ?? []).filter((point) => point.figure !== null && Number.isFinite(point.x));
    points.sort((a, b) => a.x - b.x);
    const limit = report.measured.unit === "bit/s" ? (report.physical_goodput_bps ?? null) : null;
    const lines = [{ label: title(report.measured), values: points.map((point) => onAxis(report.measured, point.figure ?? 0)) }];
    const reference = limit === null ? [] : [{ label: "Physical limit", reference: true, values: points.map(() => limit / 1e6) }];
    return { x: points.map((point) => point.x), lines: [...lines, ...reference] };
  }, [report]);
  if (!report.plateau || data.x.length < 2) return null;
  const { knob } = report.plateau;
  return (
    <Section id="plateau" title={`Plateau of ${knob}`}>
      <Chart
        label={`${title(report.measured)} by ${knob}, ${data.x.length} levels`}
        logX
        xLabel={`${knob}${report.plateau.unit ? `, ${report.plateau.unit}` : ""}`}
        yLabel={axis(report.measured)}
        format={mbit}
        {...data}
      />
    </Section>
  );
}
