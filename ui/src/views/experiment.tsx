import { useMemo, useState } from "preact/hooks";
import { post, remove } from "../api";
import { Chart } from "../chart";
import { axis, duration, evidence, figure, GOODPUT, mbit, ms, onAxis, rate, title, type Measured } from "../format";
import { Choice, Fetched, Figure, Section, Table, Text, Trouble, useDoing, useGet, useLatest } from "../parts";
import { usePlace } from "../place";
import { Verdict, type Report } from "../report";
import { rates, useEvents, useLast, type End, type Run, type Sample } from "../run";

interface Preset {
  title: string;
  path: { rtt_us: number; pmtu: number; bdp_bytes: number };
  physical_goodput_bps: { down: number | null; up: number | null } | null;
  client_mtu: number;
}

interface Trial {
  phase: string;
  round: number;
  arm: number;
  goodput_bps: number | null;
  figure: number | null;
  status: string;
  notes: string[];
}

interface Round {
  rounds: number;
  trials: number;
  evidence: number[];
  spent_s: number;
  left: number;
}

/** All that was heard of an experiment. */
interface Heard {
  begin: { id: string; arms: string[]; max_trials: number; expected_s: number; measured: Measured } | null;
  trials: Trial[];
  rounds: Round[];
  /** Of the trial that runs. */
  samples: Sample[];
  result: Report | null;
  end: End | null;
}

/** What `tune --dry-run --json` prints. */
interface Plan {
  arms: { label: string; settings: Record<string, unknown>; why: string }[];
  max_trials: number;
  trial_s: number;
  expected_s: number;
}

const NOTHING: Heard = { begin: null, trials: [], rounds: [], samples: [], result: null, end: null };
/** What a false claim's probability is bounded by. */
const ALPHA = 0.05;
const KNOBS: [string, string][] = [
  ["rwin", "4x,16x,64KiB"],
  ["mtu", "1454,1492"],
  ["cc", "cubic,bbr"],
  ["mss", "1412,1452"],
  ["initcwnd", "10,20"],
  ["sndbuf", "128KiB,1MiB"],
  ["sack", "on,off"],
  ["timestamps", "on,off"],
  ["window-scaling", "on,off"],
  ["ecn", "on,off"],
];

/** What each trial does. */
const WORKLOADS: [string, string][] = [
  ["bulk", "one long transfer"],
  ["download-12mb", "a download of 12 MB"],
  ["page", "a page of 44 objects"],
  ["transactions", "requests, one after the other"],
  ["bursts", "bursts with pauses"],
  ["stream", "a stream of messages"],
  ["load", "latency under load"],
];

/** An experiment: chosen, started, watched. */
export function Experiment() {
  const [last, setRun, asked] = useLast("experiment");
  const [another, setAnother] = useState(location.search === "?drawn");
  const run = another ? null : last;
  const start = (run: Run): void => {
    setRun(run);
    setAnother(false);
  };
  return (
    <>
      <h1>Experiment</h1>
      {asked && !run && <Choose start={start} />}
      {run && <Watch key={run.id} run={run} another={() => setAnother(true)} />}
    </>
  );
}

function Choose({ start }: { start: (run: Run) => void }) {
  const place = usePlace({
    lab: "adsl",
    real: "on the real path",
    label: "Far end",
    placeholder: "https://example.org/file.iso",
    hint: "A file on a web or FTP server, or iperf3://HOST. It is asked politely, one connection at a time.",
    doing: "Measuring a real path",
  });
  const [knobs, setKnobs] = useState<Record<string, string>>({ rwin: "", mtu: "", cc: "" });
  const [budget, setBudget] = useState("");
  const [trial, setTrial] = useState("");
  const [direction, setDirection] = useState("down");
  const [workload, setWorkload] = useState("bulk");
  const [busy, problem, run] = useDoing();
  const levels = Object.fromEntries(Object.entries(knobs).filter(([, levels]) => levels.trim() !== ""));
  const request = {
    ...place.request,
    knobs: Object.keys(knobs),
    levels,
    direction,
    workload,
    ...(budget.trim() && { budget: budget.trim() }),
    ...(trial.trim() && { trial: trial.trim() }),
  };
  const sensible = !place.real && Object.keys(knobs).length > 0;
  const [plan, unplanned] = useLatest<Plan | null>(JSON.stringify(request), () => (sensible ? post("experiments/plan", request) : Promise.resolve(null)), 400);
  /** The levels that the path suggests. */
  const suggested = (knob: string): string =>
    (plan?.arms ?? []).map((arm) => arm.settings[knob]).filter((level) => level !== undefined).join(",");
  const toggle = (knob: string, on: boolean): void => {
    const { [knob]: _, ...others } = knobs;
    setKnobs(on ? { ...others, [knob]: "" } : others);
  };
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        run(() => post<Run>("experiments", request).then(start));
      }}
    >
      <p class="lead">
        Settings in random order, your current one always among them. In the lab real kernels meet over an emulated path, and nothing on this
        host changes.
      </p>
      {place.fields}
      {place.preset && <Facts lab={place.preset} />}
      {place.token}
      <fieldset>
        <legend>What to vary</legend>
        <p class="quiet">Without levels they are chosen from the path.</p>
        <div class="knobs">
          {KNOBS.map(([knob, hint]) => (
            <div key={knob}>
              <label>
                <input type="checkbox" checked={knob in knobs} onChange={(event) => toggle(knob, event.currentTarget.checked)} /> {knob}
              </label>
              <input
                aria-label={`Levels of ${knob}`}
                placeholder={(knob in knobs && suggested(knob)) || hint}
                disabled={!(knob in knobs)}
                value={knobs[knob] ?? ""}
                onInput={(event) => setKnobs({ ...knobs, [knob]: event.currentTarget.value })}
              />
            </div>
          ))}
        </div>
      </fieldset>
      <div class="row">
        <Choice label="Workload" value={workload} set={setWorkload} options={WORKLOADS} />
        <Choice
          label="Direction"
          value={direction}
          set={setDirection}
          options={[
            ["down", "down, to the client"],
            ["up", "up, to the server"],
          ]}
        />
        <Text label="Budget" value={budget} set={setBudget} placeholder="150s" hint="10min, 200MB or 60 trials; where a path is slow, eight rounds" />
        <Text label="Each trial" value={trial} set={setTrial} placeholder="from the RTT" hint="200ms to 10min" />
      </div>
      {plan && !unplanned && <Planned plan={plan} />}
      {(problem ?? unplanned) && <Trouble problem={(problem ?? unplanned)!} />}
      <button type="submit" class="primary" disabled={busy || Object.keys(knobs).length === 0 || !place.complete}>
        Start
      </button>
    </form>
  );
}

/** What would be compared, and how long it may take: the levels filled in from the path. */
function Planned({ plan }: { plan: Plan }) {
  return (
    <details class="planned">
      <summary>
        {plan.arms.length} settings, trials of {duration(plan.trial_s)}, at most {plan.max_trials} of them: {duration(plan.expected_s)} or less
      </summary>
      <Table
        label="What would be compared"
        rows={plan.arms}
        columns={[
          { name: "Setting", cell: (arm) => arm.label },
          { name: "Why", cell: (arm) => arm.why },
        ]}
      />
    </details>
  );
}

function Facts({ lab }: { lab: string }) {
  const [preset, again] = useGet<Preset>(`lab/presets/${lab}`);
  return (
    <Fetched of={preset} again={again}>
      {(preset) => (
        <dl class="figures">
          <Figure name="RTT">{ms(preset.path.rtt_us)}</Figure>
          <Figure name="PMTU">{preset.path.pmtu} bytes</Figure>
          <Figure name="BDP">{(preset.path.bdp_bytes / 1024).toFixed(1)} KiB</Figure>
          <Figure name="Goodput at most">
            {rate(preset.physical_goodput_bps?.down)} down, {rate(preset.physical_goodput_bps?.up)} up
          </Figure>
        </dl>
      )}
    </Fetched>
  );
}

function take(heard: Heard, { kind, data }: { kind: string; data: unknown }): Heard {
  switch (kind) {
    case "begin":
      return { ...heard, begin: data as Heard["begin"] };
    case "sample":
      return { ...heard, samples: next(heard.samples, data as Sample) };
    case "trial":
      return { ...heard, samples: [], trials: [...heard.trials, data as Trial] };
    case "round":
      return { ...heard, rounds: [...heard.rounds, data as Round] };
    case "result":
      return { ...heard, result: data as Report };
    case "end":
      return { ...heard, end: data as End };
    default:
      return heard;
  }
}

/** The samples of one transfer: where time goes back, another one has begun. */
function next(samples: Sample[], sample: Sample): Sample[] {
  const last = samples.at(-1);
  return last && sample.t_us + 150_000 < last.t_us ? [sample] : [...samples, sample];
}

function Watch({ run, another }: { run: Run; another: () => void }) {
  const heard = useEvents(run, NOTHING, take);
  const [, problem, doing] = useDoing();
  const stop = (): void => doing(() => remove(`experiments/${run.id}`));
  return (
    <>
      <p class="lead">
        {String(run.request.lab ?? run.request.target ?? "a path drawn in Lab")}
        {heard.begin && <span class="quiet"> · in the journal as {heard.begin.id}</span>}
      </p>
      {!heard.end && <Progress heard={heard} stop={stop} />}
      {!heard.end && <Now samples={heard.samples} />}
      {problem && <Trouble problem={problem} />}
      {heard.end?.error && <Trouble problem={heard.end.error} />}
      {heard.end && (
        <div class="buttons">
          <button type="button" class="primary" onClick={another}>
            Another experiment
          </button>
        </div>
      )}
      {heard.result && <Verdict report={heard.result} />}
      <Evidence heard={heard} />
      <Goodput heard={heard} />
      <Trials heard={heard} />
    </>
  );
}

function Progress({ heard, stop }: { heard: Heard; stop: () => void }) {
  const counted = heard.trials.filter((trial) => trial.phase === "round" && trial.status !== "invalid").length;
  const last = heard.trials.at(-1);
  const round = heard.rounds.at(-1);
  return (
    <section class="progress" aria-label="Progress">
      <p aria-live="polite">
        {!heard.begin && "The path is built, and its RTT is measured first …"}
        {heard.begin &&
          `${counted} of at most ${heard.begin.max_trials} trials; at most ${duration(heard.begin.expected_s)}` +
            (round ? ` · round ${round.rounds}, ${round.left} settings left` : "")}
      </p>
      {heard.begin ? <progress max={heard.begin.max_trials} value={counted} aria-label="Trials" /> : <progress aria-label="Preparing" />}
      {last && (
        <p>
          Last trial: {heard.begin?.arms[last.arm] ?? last.phase}, <strong>{figure(heard.begin?.measured ?? GOODPUT, last.figure)}</strong>
          {last.status !== "completed" && ` (${last.status}: ${last.notes.join("; ")})`}
        </p>
      )}
      <div class="buttons">
        <button type="button" onClick={stop}>
          Stop, and keep what was measured
        </button>
      </div>
    </section>
  );
}

/** Throughput of the transfer that runs. */
export function Now({ samples }: { samples: Sample[] }) {
  const data = useMemo(() => {
    const end = samples.some((sample) => sample.end === "receiver") ? "receiver" : "sender";
    const own = samples.filter((sample) => sample.end === end);
    return {
      x: own.map((sample) => sample.t_us / 1e6),
      lines: [{ label: "Goodput", values: rates(own.map((sample) => sample.t_us), own.map((sample) => sample.bytes)) }],
    };
  }, [samples]);
  if (data.x.length < 2) return null;
  return (
    <Section id="now" title="The transfer that runs">
      <Chart label={`Goodput of the last ${data.x.at(-1)?.toFixed(1)} s`} xLabel="Time, s" yLabel="Goodput, Mbit/s" height={180} format={mbit} {...data} />
    </Section>
  );
}

/** Evidence by round, and what a claim needs. */
function Evidence({ heard }: { heard: Heard }) {
  const arms = heard.begin?.arms ?? [];
  const needed = (arms.length - 1) / ALPHA;
  const data = useMemo(() => {
    const lines = arms.slice(1).map((label, arm) => ({
      label,
      // As in the other chart, where the current setting has the first one.
      colour: arm + 1,
      values: heard.rounds.map((round) => Math.max(round.evidence[arm + 1] ?? 1, 0.01)),
    }));
    const threshold = { label: `needed for a claim`, values: heard.rounds.map(() => needed), reference: true };
    return { x: heard.rounds.map((round) => round.rounds), lines: [...lines, threshold] };
  }, [heard.rounds, heard.begin]);
  if (heard.rounds.length === 0) return null;
  const best = Math.max(...(heard.rounds.at(-1)?.evidence ?? [1]));
  return (
    <Section id="evidence" title="Evidence">
      <p>
        Most so far: <strong>{evidence(best)}</strong>. A setting is claimed to be faster from {evidence(needed)} on.
      </p>
      <Chart
        label={`Evidence by round for ${arms.length - 1} settings; the most is ${evidence(best)} of ${evidence(needed)} needed`}
        whole
        xLabel="Round"
        yLabel="Evidence, to one"
        log
        format={(value) => (value >= 0.1 && value < 1e5 ? String(Math.round(value * 10) / 10) : value.toExponential(0))}
        {...data}
      />
    </Section>
  );
}

/** Goodput of every trial that counts, or what else its workload is known by. */
function Goodput({ heard }: { heard: Heard }) {
  const measured = heard.begin?.measured ?? GOODPUT;
  const arms = heard.begin?.arms ?? [];
  const data = useMemo(() => {
    const trials = heard.trials.filter((trial) => trial.phase === "round" && trial.status === "completed");
    const lines = arms.map((label, arm) => ({
      label,
      points: true,
      values: trials.map((trial) => (trial.arm === arm ? onAxis(measured, trial.figure ?? 0) : null)),
    }));
    return { x: trials.map((_, place) => place + 1), lines };
  }, [heard.trials, heard.begin]);
  if (data.x.length === 0) return null;
  return (
    <Section id="goodput" title={title(measured)}>
      <Chart
        label={`${title(measured)} of ${data.x.length} trials of ${arms.length} settings, in the order in which they ran`}
        whole
        xLabel="Trial"
        yLabel={axis(measured)}
        format={mbit}
        {...data}
      />
    </Section>
  );
}

function Trials({ heard }: { heard: Heard }) {
  if (heard.trials.length === 0) return null;
  return (
    <details>
      <summary>Every trial ({heard.trials.length})</summary>
      <Table
        label="Trials"
        rows={heard.trials}
        columns={[
          { name: "Round", cell: (trial) => trial.round || trial.phase },
          { name: "Setting", cell: (trial) => heard.begin?.arms[trial.arm] ?? "–" },
          { name: title(heard.begin?.measured ?? GOODPUT), cell: (trial) => figure(heard.begin?.measured ?? GOODPUT, trial.figure) },
          { name: "Status", cell: (trial) => [trial.status, ...trial.notes].join("; ") },
        ]}
      />
    </details>
  );
}
