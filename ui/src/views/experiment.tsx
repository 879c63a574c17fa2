import { useEffect, useMemo, useState } from "preact/hooks";
import { get, post, problemOf, remove, type Problem } from "../api";
import { Chart } from "../chart";
import { duration, evidence, ms, rate } from "../format";
import { Fetched, Field, Figure, Trouble, useGet, Wide } from "../parts";
import { Verdict, type Report } from "../report";

interface Presets {
  presets: { name: string; title: string }[];
}

interface Preset {
  title: string;
  path: { rtt_us: number; pmtu: number; bdp_bytes: number };
  physical_goodput_bps: { down: number | null; up: number | null } | null;
  client_mtu: number;
}

interface Run {
  id: string;
  request: { lab: string };
  experiment: string | null;
  end: End | null;
}

interface End {
  exit_code: number;
  error: Problem | null;
}

interface Trial {
  phase: string;
  round: number;
  arm: number;
  goodput_bps: number | null;
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
  begin: { id: string; arms: string[]; max_trials: number; expected_s: number } | null;
  trials: Trial[];
  rounds: Round[];
  result: Report | null;
  end: End | null;
}

const NOTHING: Heard = { begin: null, trials: [], rounds: [], result: null, end: null };
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

/** An experiment over an emulated path: chosen, started, watched. */
export function Experiment() {
  const [run, setRun] = useState<Run | null>(null);
  const [asked, setAsked] = useState(false);
  useEffect(() => {
    // One that runs already, or the last one, is what people want to see.
    get<Run[]>("experiments").then(
      (runs) => {
        setRun(runs[0] ?? null);
        setAsked(true);
      },
      () => setAsked(true),
    );
  }, []);
  return (
    <>
      <h1>Experiment</h1>
      {asked && !run && <Choose start={setRun} />}
      {run && <Watch key={run.id} run={run} another={() => setRun(null)} />}
    </>
  );
}

function Choose({ start }: { start: (run: Run) => void }) {
  const [presets, again] = useGet<Presets>("lab/presets");
  const [lab, setLab] = useState("adsl");
  const [knobs, setKnobs] = useState<Record<string, string>>({ rwin: "", mtu: "", cc: "" });
  const [budget, setBudget] = useState("");
  const [trial, setTrial] = useState("");
  const [direction, setDirection] = useState("down");
  const [problem, setProblem] = useState<Problem | null>(null);
  const [busy, setBusy] = useState(false);
  const submit = (event: Event): void => {
    event.preventDefault();
    setBusy(true);
    const levels = Object.fromEntries(Object.entries(knobs).filter(([, levels]) => levels.trim() !== ""));
    const optional = { ...(budget.trim() && { budget: budget.trim() }), ...(trial.trim() && { trial: trial.trim() }) };
    post<Run>("experiments", { lab, knobs: Object.keys(knobs), levels, direction, ...optional })
      .then(start, (error) => setProblem(problemOf(error)))
      .finally(() => setBusy(false));
  };
  const toggle = (knob: string, on: boolean): void => {
    const { [knob]: _, ...others } = knobs;
    setKnobs(on ? { ...others, [knob]: "" } : others);
  };
  return (
    <form onSubmit={submit}>
      <p class="lead">
        Real kernels over an emulated path, settings in random order, your current one always among them. Nothing on this host changes.
      </p>
      <Fetched of={presets} again={again}>
        {(presets) => (
          <Field label="Path">
            <select value={lab} onChange={(event) => setLab(event.currentTarget.value)} class="long">
              {presets.presets.map((preset) => (
                <option value={preset.name}>{preset.title}</option>
              ))}
            </select>
          </Field>
        )}
      </Fetched>
      <Facts lab={lab} />
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
                placeholder={hint}
                disabled={!(knob in knobs)}
                value={knobs[knob] ?? ""}
                onInput={(event) => setKnobs({ ...knobs, [knob]: event.currentTarget.value })}
              />
            </div>
          ))}
        </div>
      </fieldset>
      <div class="row">
        <Field label="Direction">
          <select value={direction} onChange={(event) => setDirection(event.currentTarget.value)}>
            <option value="down">down, to the client</option>
            <option value="up">up, to the server</option>
          </select>
        </Field>
        <Field label="Budget" hint="10min, 200MB or 60 trials; where a path is slow, eight rounds">
          <input value={budget} placeholder="150s" onInput={(event) => setBudget(event.currentTarget.value)} class="short" />
        </Field>
        <Field label="Each trial" hint="200ms to 10min">
          <input value={trial} placeholder="from the RTT" onInput={(event) => setTrial(event.currentTarget.value)} class="short" />
        </Field>
      </div>
      {problem && <Trouble problem={problem} />}
      <button type="submit" class="primary" disabled={busy || Object.keys(knobs).length === 0}>
        Start
      </button>
    </form>
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

/** Follows the events of an experiment; a broken connection goes on where it was. */
function useEvents(run: Run): Heard {
  const [heard, setHeard] = useState(NOTHING);
  useEffect(() => {
    const source = new EventSource(`/api/v1/experiments/${run.id}/events`);
    const on = (kind: string, take: (heard: Heard, data: never) => Heard): void =>
      source.addEventListener(kind, (event) => {
        const data = JSON.parse((event as MessageEvent<string>).data) as never;
        setHeard((heard) => take(heard, data));
      });
    on("begin", (heard, begin) => ({ ...heard, begin }));
    on("trial", (heard, trial) => ({ ...heard, trials: [...heard.trials, trial] }));
    on("round", (heard, round) => ({ ...heard, rounds: [...heard.rounds, round] }));
    on("result", (heard, result) => ({ ...heard, result }));
    on("end", (heard, end) => {
      source.close();
      return { ...heard, end };
    });
    return () => source.close();
  }, [run.id]);
  return heard;
}

function Watch({ run, another }: { run: Run; another: () => void }) {
  const heard = useEvents(run);
  const [problem, setProblem] = useState<Problem | null>(null);
  const stop = (): void => {
    remove(`experiments/${run.id}`).catch((error) => setProblem(problemOf(error)));
  };
  return (
    <>
      <p class="lead">
        {run.request.lab}
        {heard.begin && <span class="quiet"> · in the journal as {heard.begin.id}</span>}
      </p>
      {!heard.end && <Progress heard={heard} stop={stop} />}
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
          Last trial: {heard.begin?.arms[last.arm] ?? last.phase}, <strong>{rate(last.goodput_bps)}</strong>
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
    <section aria-labelledby="evidence">
      <h2 id="evidence">Evidence</h2>
      <p>
        Most so far: <strong>{evidence(best)}</strong>. A setting is claimed to be faster from {evidence(needed)} on.
      </p>
      <Chart
        label={`Evidence by round for ${arms.length - 1} settings; the most is ${evidence(best)} of ${evidence(needed)} needed`}
        xLabel="Round"
        yLabel="Evidence, to one"
        log
        format={(value) => (value >= 0.1 && value < 1e5 ? String(Math.round(value * 10) / 10) : value.toExponential(0))}
        {...data}
      />
    </section>
  );
}

/** Goodput of every trial that counts. */
function Goodput({ heard }: { heard: Heard }) {
  const arms = heard.begin?.arms ?? [];
  const data = useMemo(() => {
    const trials = heard.trials.filter((trial) => trial.phase === "round" && trial.status === "completed");
    const lines = arms.map((label, arm) => ({
      label,
      points: true,
      values: trials.map((trial) => (trial.arm === arm ? (trial.goodput_bps ?? 0) / 1e6 : null)),
    }));
    return { x: trials.map((_, place) => place + 1), lines };
  }, [heard.trials, heard.begin]);
  if (data.x.length === 0) return null;
  return (
    <section aria-labelledby="goodput">
      <h2 id="goodput">Goodput</h2>
      <Chart
        label={`Goodput of ${data.x.length} trials of ${arms.length} settings, in the order in which they ran`}
        xLabel="Trial"
        yLabel="Goodput, Mbit/s"
        format={(value) => value.toFixed(value < 10 ? 2 : 1)}
        {...data}
      />
    </section>
  );
}

function Trials({ heard }: { heard: Heard }) {
  if (heard.trials.length === 0) return null;
  return (
    <details>
      <summary>Every trial ({heard.trials.length})</summary>
      <Wide label="Trials">
        <table>
          <thead>
            <tr>
              <th scope="col">Round</th>
              <th scope="col">Setting</th>
              <th scope="col">Goodput</th>
              <th scope="col">Status</th>
            </tr>
          </thead>
          <tbody>
            {heard.trials.map((trial, place) => (
              <tr key={place}>
                <td>{trial.round || trial.phase}</td>
                <td>{heard.begin?.arms[trial.arm] ?? "–"}</td>
                <td>{rate(trial.goodput_bps)}</td>
                <td>{[trial.status, ...trial.notes].join("; ")}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </Wide>
    </details>
  );
}
