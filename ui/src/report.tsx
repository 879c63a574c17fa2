import type { ComponentChildren } from "preact";
import { useMemo } from "preact/hooks";
import { Chart } from "./chart";
import { axis, confidence, evidence, figure, mbit, ms, onAxis, outwards, rate, scale, settings, times, title, value } from "./format";
import { AsCommand } from "./keep";
import { Figure, Section, Sentences, Table } from "./parts";
import { plain } from "./words";
import type { AnswerHost, ReportArm as Arm, TuneReport as Report } from "./schema";

export type { ReportArm as Arm, TuneReport as Report } from "./schema";

const STATES: Record<string, string> = { open: "not proven", "not-set": "couldn't be set", behind: "left out (estimate)", failing: "every trial failed" };

/** Where a step is done, in words. */
const PLACES: Record<AnswerHost, string> = { here: "on this host", server: "on the server", client: "on the client", both: "on both ends" };

/** What the fastest of those settings asks for that were shown to be faster, if there are any. */
function faster({ arms }: Report): Record<string, unknown> {
  const shown = arms.filter((arm) => arm.state === "faster").sort((a, b) => (b.ratio ?? 0) - (a.ratio ?? 0));
  return shown[0]?.settings ?? {};
}

/** A headline in which a figure and its unit stay on one line. */
const whole = (text: string): ComponentChildren[] =>
  text.split(/(\S*\d (?:%|µs|ms|s|min|h|[kM]?B|bytes|[kMG]bit\/s|[kM]B\/s)(?!\w))/).map((part, at) => (at % 2 ? <span class="nowrap">{part}</span> : part));

/** A finished experiment. */
export function Verdict({ report }: { report: Report }) {
  const plans = Object.entries(faster(report));
  const steps = report.verdict.answer?.action === "set" ? report.verdict.answer.do : [];
  // What belongs on the server does nothing for this transfer here.
  const here = steps.length === 0 || steps.some(({ host }) => host !== "server");
  return (
    <>
      <Section id="verdict" class={`verdict ${steps.length > 0 ? "faster" : report.verdict.kind}`} title={whole(report.verdict.answer?.what ?? report.verdict.headline)}>
        {report.verdict.answer?.lines.slice(1).map((line) => (
          <p>{line}</p>
        ))}
        {report.verdict.details.length > 0 && (
          <details>
            <summary>What this rests on</summary>
            {report.verdict.details.map((detail) => (
              <p>{plain(detail)}</p>
            ))}
          </details>
        )}
        {here && plans.length > 0 && (
          <div class="buttons">
            {plans.map(([knob, level]) => (
              <a key={knob} class="button" href={`/host?${new URLSearchParams({ change: knob, to: value(level) })}`}>
                Plan {knob}={value(level)} on this host
              </a>
            ))}
          </div>
        )}
        {steps.length > 0 && <AsCommand title={`What to type ${steps.map(({ host }) => PLACES[host]).join(", ")}`} text={steps.map(({ command }) => command).join("\n")} />}
      </Section>
      <Sentences id="mind" title="Warnings" of={report.warnings} />
      <dl class="figures">
        {report.path.rtt_us > 0 && <Figure name="RTT">{ms(report.path.rtt_us)}</Figure>}
        {report.path.pmtu > 0 && <Figure name="PMTU">{report.path.pmtu} bytes</Figure>}
        <Figure name="Physical limit">{rate(report.physical_goodput_bps)}</Figure>
        <Figure name="Rounds, trials">
          {report.rounds}, {report.trials}
        </Figure>
      </dl>
      <Settings report={report} />
      <Frontier report={report} />
      {report.trial_table.some(({ measures }) => measures?.objects?.length) && (
        <div class="buttons">
          <a class="button" href={`/waterfall/${encodeURIComponent(report.id)}`}>
            How the page came, before and after
          </a>
        </div>
      )}
      <Plateau report={report} />
      <Sentences id="next" title="Next" of={report.next} />
    </>
  );
}

/** The interval that the random order proves, or else the model's, which claims nothing. */
function interval(arm: Arm): string {
  if (arm.low != null && arm.high != null) return outwards(arm.low, arm.high);
  if (arm.model_low != null && arm.model_high != null) return `~ ${outwards(arm.model_low, arm.model_high)}`;
  return "open";
}

/** What is shown of a setting, in a word or two. */
function shown({ arms, delay }: Report, arm: Arm): string {
  if (delay?.shown && arms[delay.arm] === arm && arm.state !== "faster") return "less delay";
  return STATES[arm.state] ?? arm.state;
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
          { name: `${title(report.measured)} (median)`, cell: (arm) => figure(report.measured, arm.figure) },
          ...(report.arms.some((arm) => arm.delay_us != null) ? [{ name: "Delay under load", cell: (arm: Arm) => (arm.delay_us == null ? "–" : ms(arm.delay_us)) }] : []),
          { name: "Ratio", cell: (arm) => times(arm.ratio) },
          { name: `${confidence(report.verdict.alpha)} interval`, cell: (arm) => unless(arm, interval(arm)) },
          { name: "Evidence", cell: (arm) => unless(arm, `${evidence(arm.evidence)} of ${evidence(arm.needed ?? 1)}`) },
          { name: "Rounds", cell: (arm) => arm.rounds },
          { name: "Shown", cell: (arm) => <span class={`badge ${["faster", "less delay"].includes(shown(report, arm)) ? "good" : ""}`}>{shown(report, arm)}</span> },
        ]}
      />
      <p class="quiet">~ marks an estimate; it is not proof.</p>
    </Section>
  );
}

/** A setting's name without what follows from it. */
export const short = ({ label, state }: Arm): string => (state === "current" ? "current" : label.split(" (")[0]!);

/** Goodput against delay under load, and the settings that no other beats in both. */
function Frontier({ report }: { report: Report }) {
  const data = useMemo(() => {
    const goodput = report.measured.name === "goodput" && report.measured.unit === "bit/s";
    const known = report.arms.flatMap((arm, place) => (goodput && arm.delay_us != null && arm.goodput_bps && arm.state !== "not-set" && arm.state !== "failing" ? [{ place, arm, x: arm.delay_us / 1e3, y: arm.goodput_bps }] : []));
    const by = scale(Math.max(0, ...known.map(({ y }) => y)));
    known.forEach((one) => (one.y /= by.one));
    known.sort((a, b) => a.x - b.x || a.y - b.y);
    const best = new Set(report.frontier ?? []);
    const where = (some: (place: number) => boolean) => ({ values: known.map(({ place, y }) => (some(place) ? y : null)), names: known.map(({ place, arm }) => (some(place) ? short(arm) : null)) });
    const lines = [
      { label: "No other has more goodput and less delay", colour: 0, steps: true, values: where((place) => best.has(place)).values },
      { label: "On that line", colour: 0, points: true, ...where((place) => place !== 0 && best.has(place)) },
      { label: "Others", colour: 2, points: true, ...where((place) => place !== 0 && !best.has(place)), names: known.length <= 8 ? where((place) => place !== 0 && !best.has(place)).names : [] },
      { label: "Current", colour: 1, points: true, ...where((place) => place === 0) },
    ];
    return { yLabel: `Goodput, ${by.unit}`, x: known.map(({ x }) => x), lines: lines.filter(({ values }) => values.some((value) => value !== null)) };
  }, [report]);
  if (data.x.length < 2) return null;
  return (
    <Section id="frontier" title="Goodput against delay">
      <Chart label={`Goodput against delay under load of ${data.x.length} settings`} xLabel="Delay under load, ms" height={300} format={mbit} {...data} />
      <p class="quiet">Up and to the left is better. Medians of trials: what is proven stands in the answer.</p>
    </Section>
  );
}

/** Goodput against the levels of the knob that has an order. */
function Plateau({ report }: { report: Report }) {
  const data = useMemo(() => {
    const points = (report.plateau?.curve ?? []).filter((point) => point.figure !== null && Number.isFinite(point.x));
    points.sort((a, b) => a.x - b.x);
    const limit = report.measured.unit === "bit/s" ? (report.physical_goodput_bps ?? null) : null;
    const by = scale(Math.max(limit ?? 0, ...points.map((point) => point.figure ?? 0)));
    const lines = [{ label: title(report.measured), values: points.map((point) => onAxis(report.measured, point.figure ?? 0, by)) }];
    const reference = limit === null ? [] : [{ label: "Physical limit", reference: true, values: points.map(() => limit / by.one) }];
    return { yLabel: axis(report.measured, by), x: points.map((point) => point.x), lines: [...lines, ...reference] };
  }, [report]);
  if (!report.plateau || data.x.length < 2) return null;
  const { knob } = report.plateau;
  return (
    <Section id="plateau" title={`Plateau of ${knob}`}>
      <Chart
        label={`${title(report.measured)} by ${knob}, ${data.x.length} levels`}
        logX
        xLabel={`${knob}${report.plateau.unit ? `, ${report.plateau.unit}` : ""}`}
        format={mbit}
        {...data}
      />
    </Section>
  );
}
