import type { ComponentChildren } from "preact";
import { useMemo, useState } from "preact/hooks";
import { Chart } from "../chart";
import { count, evidence, figure, mbit, rate, times, when } from "../format";
import { Choice, Fetched, Figure, Section, Table, useGet } from "../parts";
import { Verdict, type Arm, type Report } from "../report";
import type { Columns } from "../run";
import { SpanButtons, TimeChart, within, type Span } from "../timechart";
import type { Journal } from "./history";

/** One trial in the samples of an experiment. */
interface Trial {
  id: number;
  phase: string;
  round: number;
  order: number;
  arm: number;
  status: string;
  goodput_bps: number;
  begin_us: number;
  elapsed_us: number;
  side: "sender" | "receiver";
  from: number;
  count: number;
}

/** What `journal samples --json` prints. */
interface Samples {
  id: string;
  arms: string[];
  trials: Trial[];
  trials_left_out: number;
  samples: Columns;
}

const place = (): URLSearchParams => new URLSearchParams(location.search);

/** An experiment of the journal in every light, and two side by side. */
export function Analysis() {
  const [journal, again] = useGet<Journal>("journal");
  const [of, setOf] = useState(place().get("of") ?? "");
  const [against, setAgainst] = useState(place().get("with") ?? "");
  const choose = (set: (id: string) => void, name: string) => (id: string) => {
    const query = place();
    query.set(name, id);
    history.replaceState(null, "", `?${query}`);
    set(id);
  };
  return (
    <>
      <h1>Analysis</h1>
      <Fetched of={journal} again={again}>
        {({ experiments }) => {
          const first = experiments[0];
          if (!first) {
            return (
              <p class="quiet">
                The journal is empty. <a href="/experiment">Start an experiment</a>, and come back to look at it.
              </p>
            );
          }
          const names = experiments.map(({ id, target, started_unix_us }): [string, string] => [id, `${target}, ${when(started_unix_us)} (${id})`]);
          const id = of || first.id;
          return (
            <>
              <div class="row">
                <Choice label="Experiment" size="long" value={id} set={choose(setOf, "of")} options={names} />
                <Choice label="Compare with" size="long" value={against} set={choose(setAgainst, "with")} options={[["", "nothing"], ...names.filter(([other]) => other !== id)]} />
              </div>
              <One key={id} id={id} />
              {against && against !== id && <Compared key={`${id} ${against}`} one={id} other={against} />}
            </>
          );
        }}
      </Fetched>
    </>
  );
}

function One({ id }: { id: string }) {
  const [report, again] = useGet<Report>(`reports/${encodeURIComponent(id)}`);
  const [samples, samplesAgain] = useGet<Samples>(`journal/${encodeURIComponent(id)}/samples`);
  return (
    <>
      <Fetched of={report} again={again}>
        {(report) =>
          report.arms ? (
            <>
              <Verdict report={report} />
              <Ratios arms={report.arms} />
            </>
          ) : (
            <p>This is a screen of many knobs: windtunnel report {id} tells it.</p>
          )
        }
      </Fetched>
      <Fetched of={samples} again={samplesAgain}>
        {(samples) => (
          <>
            <OverTime samples={samples} />
            <Delay samples={samples} />
          </>
        )}
      </Fetched>
    </>
  );
}

/** Each setting's goodput as a share of the current one's, and what it may be by chance. */
function Ratios({ arms }: { arms: Arm[] }) {
  const data = useMemo(() => {
    const bars = arms.map((arm): [number, number] | null => {
      if (arm.low !== null && arm.high !== null) return [arm.low, arm.high];
      return arm.model_low !== null && arm.model_high !== null ? [arm.model_low, arm.model_high] : null;
    });
    const ratios = { label: "Ratio", points: true, values: arms.map((arm) => arm.ratio), bars };
    const one = { label: "the current setting", reference: true, values: arms.map(() => 1) };
    return { x: arms.map((_, place) => place), lines: [ratios, one], names: arms.map(({ label, state }) => (state === "current" ? "current" : label.split(" (")[0]!)) };
  }, [arms]);
  if (arms.length < 2) return null;
  return (
    <Section id="ratios" title="Against the current setting">
      <Chart label={`Goodput of ${arms.length} settings as a share of the current one's, with 95 % intervals`} xLabel="" yLabel="Ratio" height={230} format={(value) => value.toFixed(2)} {...data} />
      <p class="quiet">Bars: the interval that the random order proves, or else the model's.</p>
    </Section>
  );
}

/** Columns on one axis of time; between trials there is nothing, or what stands for it. */
function series({ trials, samples }: Samples, between: number, value: (trial: Trial, at: number) => number): { x: Float64Array; y: Float64Array } {
  const most = trials.reduce((sum, trial) => sum + trial.count + 2, 0);
  const [x, y] = [new Float64Array(most), new Float64Array(most)];
  let out = 0;
  const put = (t_us: number, value: number): void => {
    x[out] = t_us / 1e6;
    y[out++] = value;
  };
  for (const trial of trials) {
    const [first, last] = [trial.from, trial.from + trial.count - 1];
    if (last < first) continue;
    put(samples.t_us[first]!, between);
    for (let at = first; at <= last; at++) put(samples.t_us[at]!, value(trial, at));
    put(samples.t_us[last]!, between);
  }
  return { x: x.subarray(0, out), y: y.subarray(0, out) };
}

/** Rate and congestion window of every trial, on one axis of time. */
function OverTime({ samples }: { samples: Samples }) {
  const { t_us, bytes, snd_cwnd, rtt } = samples.samples;
  // Over 100 ms: acknowledgements come in bursts.
  let before = 0;
  const over = (trial: Trial, at: number): number => {
    before = Math.max(before, trial.from);
    while (before < at - 1 && t_us[at]! - t_us[before + 1]! >= 100_000) before++;
    return at === trial.from ? 0 : Math.max(0, ((bytes[at]! - bytes[before]!) * 8) / (t_us[at]! - t_us[before]!));
  };
  const lines = useMemo(
    () => ({
      rate: series(samples, 0, over),
      cwnd: series(samples, 0, (trial, at) => (trial.side === "sender" ? snd_cwnd[at]! / 1024 : NaN)),
      rtt: series(samples, NaN, (_, at) => (rtt[at]! > 0 ? rtt[at]! / 1e3 : NaN)),
    }),
    [samples],
  );
  const all: Span = [lines.rate.x[0] ?? 0, lines.rate.x.at(-1) ?? 1];
  const [span, setSpan] = useState(all);
  const [chosen, setChosen] = useState("");
  const look = (id: string): void => {
    setChosen(id);
    const trial = samples.trials.find((trial) => String(trial.id) === id);
    const [from, to] = trial ? [trial.begin_us / 1e6, (trial.begin_us + trial.elapsed_us) / 1e6] : all;
    setSpan(within([from, to], all));
  };
  const name = (trial: Trial): string => `${trial.round ? `round ${trial.round}` : trial.phase}: ${trial.round ? (samples.arms[trial.arm] ?? "?") : ""} ${rate(trial.goodput_bps)}`;
  const choice = useMemo(
    () => (
      <div class="row">
        <Choice label="Look at" size="long" value={chosen} set={look} options={[["", `all ${samples.trials.length} trials`], ...samples.trials.map((trial): [string, string] => [String(trial.id), name(trial)])]} />
      </div>
    ),
    [samples, chosen],
  );
  if (t_us.length < 2) return <p class="quiet">No samples were kept of this experiment.</p>;
  const shared = { span, setSpan, label: "" };
  return (
    <Section id="time" title="Over time">
      {choice}
      <SpanButtons span={span} all={all} set={setSpan} />
      <h3>Goodput</h3>
      <TimeChart {...shared} {...lines.rate} label={`Goodput over time, ${count(t_us.length)} samples`} yLabel="Mbit/s" colour={1} format={mbit} />
      <h3>Congestion window</h3>
      <TimeChart {...shared} {...lines.cwnd} label={`Congestion window over time, ${count(t_us.length)} samples`} yLabel="cwnd, KiB" colour={2} format={(value) => value.toFixed(0)} />
      <h3>RTT</h3>
      <TimeChart {...shared} {...lines.rtt} label={`Smoothed RTT over time, ${count(t_us.length)} samples`} yLabel="RTT, ms" colour={3} format={(value) => value.toFixed(0)} />
      <p class="quiet">
        {count(t_us.length)} samples of {samples.trials.length} trials
        {samples.trials_left_out > 0 && `; ${samples.trials_left_out} more are left out`}. Drag to move, Ctrl and the wheel to zoom.
      </p>
    </Section>
  );
}

/** What a setting costs in delay for what it brings. */
function Delay({ samples }: { samples: Samples }) {
  const data = useMemo(() => {
    const { rtt } = samples.samples;
    const points = samples.trials
      .filter((trial) => trial.round > 0 && trial.status === "completed")
      .map((trial) => {
        const own = rtt.slice(trial.from, trial.from + trial.count).filter((us) => us > 0);
        return { arm: trial.arm, x: own.reduce((sum, us) => sum + us, 0) / own.length / 1e3, y: trial.goodput_bps / 1e6 };
      })
      .filter(({ x }) => Number.isFinite(x))
      .sort((a, b) => a.x - b.x);
    const lines = samples.arms.map((label, arm) => ({ label, points: true, values: points.map((point) => (point.arm === arm ? point.y : null)) }));
    return { x: points.map(({ x }) => x), lines };
  }, [samples]);
  if (data.x.length < 2) return null;
  return (
    <Section id="delay" title="Throughput against delay">
      <Chart label={`Goodput against mean RTT of ${data.x.length} trials`} xLabel="Mean RTT of the trial, ms" yLabel="Goodput, Mbit/s" height={300} format={mbit} {...data} />
      <p class="quiet">Up and to the left is better: more data, less queueing.</p>
    </Section>
  );
}

/** Two experiments side by side, setting by setting. */
function Compared({ one, other }: { one: string; other: string }) {
  const [a, againA] = useGet<Report>(`reports/${encodeURIComponent(one)}`);
  const [b, againB] = useGet<Report>(`reports/${encodeURIComponent(other)}`);
  return (
    <Fetched of={a} again={againA}>
      {(a) => (
        <Fetched of={b} again={againB}>
          {(b) => (
            <SideBySide reports={[a, b]}>
              <Said of={[one, other]} />
            </SideBySide>
          )}
        </Fetched>
      )}
    </Fetched>
  );
}

/** What the command line says of two experiments: whether they can be compared, and what differs. */
function Said({ of }: { of: [string, string] }) {
  const [said, again] = useGet<{ text: string }>(`compare?anyway=true&experiments=${of.map(encodeURIComponent).join(",")}`);
  return (
    <Fetched of={said} again={again}>
      {({ text }) => text.split("\n").map((line) => <p key={line}>{line}</p>)}
    </Fetched>
  );
}

function SideBySide({ reports: [a, b], children }: { reports: [Report, Report]; children: ComponentChildren }) {
  if (!a.arms || !b.arms) return <p class="quiet">Screens of many knobs can't be compared here.</p>;
  const key = (arm: Arm): string => (arm.state === "current" ? "current" : JSON.stringify(Object.entries(arm.settings).sort()));
  const keys = [...new Set([...a.arms, ...b.arms].map(key))];
  const rows = keys.map((wanted) => {
    const [left, right] = [a, b].map((report) => report.arms.find((arm) => key(arm) === wanted) ?? null);
    return { label: left?.label ?? right?.label ?? "", left: left ?? null, right: right ?? null };
  });
  const interval = (arm: Arm | null): string => (arm && arm.low !== null && arm.high !== null ? `${times(arm.low)} to ${times(arm.high)}` : "open");
  const side = (name: string, report: Report, of: (row: (typeof rows)[number]) => Arm | null) => [
    { name: `${name}: ${report.measured.name}`, cell: (row: (typeof rows)[number]) => figure(report.measured, of(row)?.figure) },
    { name: `${name}: ratio`, cell: (row: (typeof rows)[number]) => (of(row) ? `${times(of(row)?.ratio)} (${interval(of(row))})` : "–") },
    { name: `${name}: evidence`, cell: (row: (typeof rows)[number]) => evidence(of(row)?.evidence) },
  ];
  return (
    <Section id="compare" title="Side by side">
      <dl class="figures">
        {[a, b].map((report, place) => (
          <Figure key={report.id} name={`${place === 0 ? "This one" : "The other"}: ${report.target}`}>
            {report.verdict.headline}
          </Figure>
        ))}
      </dl>
      <Table
        label="Two experiments, setting by setting"
        rows={rows}
        columns={[{ name: "Setting", cell: (row) => row.label }, ...side("This one", a, (row) => row.left), ...side("The other", b, (row) => row.right)]}
      />
      <p class="quiet">Ratios are each against the current setting of the same experiment.</p>
      {children}
    </Section>
  );
}
