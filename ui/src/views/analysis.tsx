import type { ComponentChildren } from "preact";
import { useEffect, useMemo, useState } from "preact/hooks";
import { get, problemOf, type Problem } from "../api";
import { Chart } from "../chart";
import { axis, confidence, count, evidence, figure, GOODPUT, mbit, onAxis, outwards, rate, scale, times, title, when } from "../format";
import { Choice, Fetched, Figure, Section, Table, Trouble, useGet } from "../parts";
import type { Arm, Report } from "../report";
import { leadsTo } from "../outcome";
import { useQuery } from "../route";
import { Answer } from "./past";
import { since, windowOf } from "../run";
import { AsCommand, command, word } from "../keep";
import { SpanButtons, TimeChart, within, type Span } from "../timechart";
import type { ExperimentSummary, JournalList as Journal, JournalSamples as Samples, SampledTrial as Trial, SharedSetting, SideBySideAnswer as Compared } from "../schema";

/** So many experiments are offered; others are found in History. */
const OFFERED = 200;

/** Whether it compares settings: logged tests and files of flent don't. */
const compares = ({ kind }: { kind?: string }): boolean => kind !== "test" && kind !== "flent";

/** Whether there is something to say of it: a comparison of congestion controls or stacks that was stopped before any verdict has no complete round. */
const tells = ({ kind, state, verdict, answer }: ExperimentSummary): boolean => !((kind === "cc" || kind === "stacks") && state === "aborted" && !verdict && !answer);

/** The one that is shown where none was chosen: the newest of which something can be said. */
const newestOf = (experiments: ExperimentSummary[]): ExperimentSummary | undefined => experiments.find(tells) ?? experiments[0];

/** An experiment of the journal in every light, and two side by side; the address says which. */
export function Analysis() {
  const [journal, again] = useGet<Journal>(`journal?limit=${OFFERED}`);
  const [{ of, with: against, also }, set] = useQuery({ of: "", with: "", also: "" });
  const newest = journal.state === "done" ? (newestOf(journal.data.experiments.filter(compares))?.id ?? "") : "";
  useEffect(() => {
    // The newest one won't be for long: the address says which it was.
    if (!of && newest) set({ of: newest }, "replace");
  }, [of, newest]);
  return (
    <>
      <h1>Analysis</h1>
      <Fetched of={journal} again={again}>
        {({ experiments: all }) => {
          const experiments = all.filter(compares);
          const first = newestOf(experiments);
          if (all.length === 0 || (!first && !of)) {
            return (
              <p class="quiet">
                {all.length ? "The journal has no experiment that compares settings." : "The journal is empty."} <a href="/experiment">Start an experiment</a>, and come back to look at it.
              </p>
            );
          }
          const id = of || first!.id;
          const names = experiments.map(({ id, target, started_unix_us }): [string, string] => [id, `${target}, ${when(started_unix_us)} (${id})`]);
          const listed = (id: string): [string, string][] => (id && !names.some(([name]) => name === id) ? [[id, id]] : []);
          return (
            <>
              <div class="row">
                <Choice label="Experiment" size="long" value={id} set={(of) => set({ of }, "push")} options={[...listed(id), ...names]} />
                <Choice label="Compare with" size="long" value={against} set={(id) => set({ with: id }, "push")} options={[["", "nothing"], ...listed(against), ...names.filter(([other]) => other !== id)]} />
              </div>
              <div class="buttons">
                <a class="button" href={leadsTo({ id, kind: all.find((one) => one.id === id)?.kind ?? "" })}>
                  Its report: to keep, to share, to delete
                </a>
              </div>
              <One key={id} id={id} />
              <Overlay
                ids={[...new Set([id, against, ...also.split(",")])].filter(Boolean)}
                names={[...listed(against), ...names]}
                add={(id) => set({ also: [...also.split(",").filter(Boolean), id].join() }, "push")}
                drop={(id) => set(id === against ? { with: "" } : { also: also.split(",").filter((other) => other && other !== id).join() }, "push")}
              />
              {against && against !== id && <Beside key={`${id} ${against}`} one={id} other={against} />}
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
        {(report) => (
          <>
            <Answer id={id} report={report} />
            {report.arms && <Ratios report={report} />}
          </>
          )}
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

/** Each setting's goodput, or what else was compared, against the current one's, and what it may be by chance. */
function Ratios({ report: { arms, measured, verdict } }: { report: Report }) {
  const data = useMemo(() => {
    const bars = arms.map((arm): [number, number] | null => {
      if (arm.low != null && arm.high != null) return [arm.low, arm.high];
      return arm.model_low != null && arm.model_high != null ? [arm.model_low, arm.model_high] : null;
    });
    const ratios = { label: "Ratio", points: true, values: arms.map((arm) => arm.ratio ?? null), bars };
    const one = { label: "the current setting", reference: true, values: arms.map(() => 1) };
    return { x: arms.map((_, place) => place), lines: [ratios, one], names: arms.map(({ label, state }) => (state === "current" ? "current" : label.split(" (")[0]!)) };
  }, [arms]);
  if (arms.length < 2) return null;
  return (
    <Section id="ratios" title="Against the current setting">
      <Chart label={`${title(measured)} of ${arms.length} settings as ${measured.better === "smaller" ? "ratios to the current one's, where larger is better" : "a share of the current one's"}, with ${confidence(verdict.alpha)} intervals`} xLabel="" yLabel="Ratio" height={230} format={(value) => value.toFixed(2)} {...data} />
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
  let before = 0;
  let window = 0;
  const over = (trial: Trial, at: number): number => {
    if (at === trial.from) {
      before = at;
      window = windowOf(rtt, trial.from, trial.count);
      return 0;
    }
    while (before < at - 1 && t_us[at]! - t_us[before + 1]! >= window) before++;
    const from = since(bytes, before, trial.from);
    return Math.max(0, ((bytes[at]! - bytes[from]!) * 8) / Math.max(t_us[at]! - t_us[from]!, window));
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
  const sampled = samples.trials.filter(({ count }) => count > 0);
  const name = (trial: Trial): string => `${trial.round ? `round ${trial.round}` : trial.phase}: ${trial.round ? (samples.arms[trial.arm] ?? "?") : ""} ${rate(trial.goodput_bps)}`;
  const choice = useMemo(
    () => (
      <div class="row">
        <Choice label="Look at" size="long" value={chosen} set={look} options={[["", `all ${sampled.length} trials that have samples`], ...sampled.map((trial): [string, string] => [String(trial.id), name(trial)])]} />
      </div>
    ),
    [samples, chosen],
  );
  if (t_us.length < 2) return <p class="quiet">No samples were kept of this experiment.</p>;
  if (!sampled.some(({ round }) => round > 0)) return <p class="quiet">The trials of this workload keep no samples over time.</p>;
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
        {count(t_us.length)} samples of {sampled.length} trials
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
        return { arm: trial.arm, x: own.reduce((sum, us) => sum + us, 0) / own.length / 1e3, y: trial.goodput_bps };
      })
      .filter(({ x }) => Number.isFinite(x))
      .sort((a, b) => a.x - b.x);
    const by = scale(Math.max(0, ...points.map(({ y }) => y)));
    points.forEach((point) => (point.y /= by.one));
    const lines = samples.arms.map((label, arm) => ({ label, points: true, values: points.map((point) => (point.arm === arm ? point.y : null)) }));
    return { yLabel: `Goodput, ${by.unit}`, x: points.map(({ x }) => x), lines };
  }, [samples]);
  if (data.x.length < 2) return null;
  return (
    <Section id="delay" title="Throughput against delay">
      <Chart label={`Goodput against mean RTT of ${data.x.length} trials`} xLabel="Mean RTT of the trial, ms" height={300} format={mbit} {...data} />
      <p class="quiet">Up and to the left is better: more data, less queueing.</p>
    </Section>
  );
}

/** More than these can't be told apart. */
const MOST_LAID = 6;

/** How the trials of one experiment are distributed, or those of the current settings of several, over each other. */
function Overlay({ ids, names, add, drop }: { ids: string[]; names: [string, string][]; add: (id: string) => void; drop: (id: string) => void }) {
  const [reports, setReports] = useState<Record<string, Report>>({});
  const [problem, setProblem] = useState<Problem | null>(null);
  const shown = ids.slice(0, MOST_LAID);
  useEffect(() => {
    for (const id of shown.filter((id) => !reports[id])) {
      get<Report>(`reports/${encodeURIComponent(id)}`).then((report) => setReports((all) => ({ ...all, [id]: report })), (error) => {
        // What is wrong with the first one stands above.
        if (id !== ids[0]) setProblem(problemOf(error));
      });
    }
  }, [shown.join()]);
  const there = shown.map((id) => reports[id]).filter((report) => report?.arms !== undefined) as Report[];
  const measured = there[0]?.measured;
  const alike = there.filter((report) => report.measured.name === measured?.name && report.measured.unit === measured.unit);
  const data = useMemo(() => distributions(alike), [alike.map(({ id }) => id).join()]);
  if (!measured || data.x.length < 2) return problem && <Trouble problem={problem} />;
  return (
    <Section id="distribution" title="Distribution of the trials">
      <p class="quiet">
        {alike.length > 1 ? "Trials of the current settings, experiment by experiment." : "Trials, setting by setting."} A point says which share of the trials had at most that {measured.name}; a steeper line is less noise.
      </p>
      <Chart label={`Distribution of ${measured.name} over the trials of ${data.lines.length} ${alike.length > 1 ? "experiments" : "settings"}`} yLabel="Share of trials, %" height={260} format={(value) => value.toFixed(0)} {...data} />
      {alike.length > 1 && data.lines.length < alike.length && <p class="note">{alike.length - data.lines.length} of them have no completed trial of the current settings, and aren't drawn.</p>}
      {there.length > alike.length && <p class="note">{there.length - alike.length} of them measured something else and can't be laid over these.</p>}
      <div class="row">
        <Choice label="Lay over it" size="long" value="" set={(id) => id && add(id)} options={[["", ids.length >= MOST_LAID ? "no more fit" : "another experiment …"], ...(ids.length >= MOST_LAID ? [] : names.filter(([id]) => !ids.includes(id)))]} />
      </div>
      {ids.length > 1 && (
        <ul class="kept" aria-label="Laid over it">
          {ids.slice(1).map((id) => (
            <li key={id}>
              <span class="mono">{id}</span>{" "}
              <button type="button" class="link" onClick={() => drop(id)}>
                Remove {id}
              </button>
            </li>
          ))}
        </ul>
      )}
    </Section>
  );
}

/** The share of trials that had at most so much. */
function distributions(reports: Report[]) {
  const completed = (report: Report, arm: number): number[] =>
    report.trial_table.filter((trial) => trial.arm === arm && trial.phase !== "delay" && trial.status === "completed" && trial.figure != null).map((trial) => trial.figure!).sort((a, b) => a - b);
  const [first] = reports;
  const sets =
    reports.length > 1
      ? reports.map((report) => ({ label: `${report.target}, ${when(report.run.started_unix_us)}`, values: completed(report, 0) }))
      : (first?.arms ?? []).map((arm, place) => ({ label: arm.state === "current" ? "current" : arm.label.split(" (")[0]!, values: first ? completed(first, place) : [] }));
  const seen = sets.filter(({ values }) => values.length > 0).slice(0, MOST_LAID);
  const all = [...new Set(seen.flatMap(({ values }) => values))].sort((a, b) => a - b);
  // Where all trials came to the same, a place on either side gives the axis a length.
  const x = all.length === 1 ? [all[0]! * 0.99, all[0]!, all[0]! * 1.01] : all;
  const share = (values: number[], at: number): number | null => {
    const below = values.filter((value) => value <= at).length;
    const next = values[below];
    // Nothing before the first trial, nor behind the last one.
    return below === 0 || (next === undefined && at > values.at(-1)!) ? null : (100 * below) / values.length;
  };
  const measured = first?.measured ?? GOODPUT;
  const by = scale(x.at(-1) ?? 0);
  return { xLabel: axis(measured, by), x: x.map((value) => onAxis(measured, value, by)), lines: seen.map(({ label, values }) => ({ label, values: x.map((at) => share(values, at)) })) };
}

/** Two experiments side by side, setting by setting. */
function Beside({ one, other }: { one: string; other: string }) {
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
  const [said, again] = useGet<Compared>(`compare?experiments=${of.map(encodeURIComponent).join(",")}`);
  return (
    <Fetched of={said} again={again}>
      {(said) => <Together said={said} />}
    </Fetched>
  );
}

/** The experiments by number, what several of them tried, and what to know of it. */
function Together({ said: { headline, experiments, current, settings, remarks } }: { said: Compared }) {
  const together = (one: SharedSetting): string => (one.faster_by_little ? "faster by little" : one.everywhere >= one.needed ? "faster in each" : one.evidence >= one.needed ? "faster" : "not shown");
  const tried = (one: SharedSetting, id: string): string => {
    const found = one.each.find(({ experiment }) => experiment === id);
    if (!found || found.ratio == null) return found ? "no estimate" : "–";
    return times(found.ratio) + (found.low != null && found.high != null ? ` (${outwards(found.low, found.high)})` : "");
  };
  const [first] = experiments;
  const alike = experiments.every(({ measured }) => measured.name === first?.measured.name);
  const ofFirst = (id: string): string => {
    const ratio = current.find(({ experiment }) => experiment === id)?.difference?.ratio;
    return ratio == null ? "–" : `×${ratio.toFixed(3)}`;
  };
  return (
    <>
      <p>{headline}</p>
      <Table
        label="The current settings, experiment by experiment"
        rows={experiments.map((one, place) => ({ ...one, number: place + 1 }))}
        columns={[
          {
            name: "Experiment",
            cell: ({ id, number }) => (
              <>
                {number}: <span class="mono">{id}</span>
              </>
            ),
          },
          { name: "Target", cell: ({ target, tunnel }) => (tunnel === "lab" ? `lab ${target}` : target) },
          { name: "Rounds", cell: ({ rounds }) => count(rounds) },
          { name: alike && first ? title(first.measured) : "Figure", cell: ({ measured, figure: median }) => figure(measured, median) },
          { name: "Of the first", cell: ({ id }) => ofFirst(id) },
        ]}
      />
      {settings.length > 0 && (
        <Table
          label="What several of them tried"
          rows={settings}
          columns={[
            { name: "Setting", cell: ({ label }) => label },
            { name: "Together", cell: together },
            { name: "Evidence", cell: (one) => `${evidence(one.evidence)} of ${evidence(one.needed)}` },
            ...experiments.map(({ id }, place) => ({ name: `In ${place + 1}`, cell: (one: SharedSetting) => tried(one, id) })),
          ]}
        />
      )}
      {remarks.map((remark, place) => (
        <p key={place} class="quiet">
          {remark}
        </p>
      ))}
    </>
  );
}

function SideBySide({ reports: [a, b], children }: { reports: [Report, Report]; children: ComponentChildren }) {
  if (!a.arms || !b.arms) return <p class="quiet">Screens of many knobs can't be compared here.</p>;
  // Seconds of a page and bits of a transfer have no ratio.
  const alike = a.measured.name === b.measured.name && a.measured.unit === b.measured.unit;
  const key = (arm: Arm): string => (arm.state === "current" ? "current" : JSON.stringify(Object.entries(arm.settings).sort()));
  const keys = [...new Set([...a.arms, ...b.arms].map(key))];
  const rows = keys.map((wanted) => {
    const [left, right] = [a, b].map((report) => report.arms.find((arm) => key(arm) === wanted) ?? null);
    return { label: left?.label ?? right?.label ?? "", left: left ?? null, right: right ?? null };
  });
  const interval = (arm: Arm | null): string => (arm && arm.low != null && arm.high != null ? outwards(arm.low, arm.high) : "open");
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
      {alike && <Table
        label="Two experiments, setting by setting"
        rows={rows}
        columns={[{ name: "Setting", cell: (row) => row.label }, ...side("This one", a, (row) => row.left), ...side("The other", b, (row) => row.right)]}
      />}
      {alike && <p class="quiet">Ratios are each against the current setting of the same experiment.</p>}
      {children}
      <AsCommand text={command("compare", word(a.id), word(b.id))} />
    </Section>
  );
}
