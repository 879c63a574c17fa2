import { useEffect, useMemo, useRef } from "preact/hooks";
import { post, remove } from "../api";
import { Chart } from "../chart";
import { duration, evidence, figure, GOODPUT, mbit, ms, rate, title, type Measured } from "../format";
import { AsCommand, command, Downloads } from "../keep";
import { NEEDED, onLine, Strips } from "../strips";
import { Choice, Fetched, Figure, Section, Table, Text, Trouble, useDoing, useGet, useLatest } from "../parts";
import { DRAWN, usePlace } from "../place";
import { Verdict, type Report } from "../report";
import { go, useQuery } from "../route";
import { plain } from "../words";
import { rates, windowOf, forgotten, useEvents, useRun, type End, type Run, type Sample } from "../run";
import type { ScenarioAnswer as Preset, TunePlan as Plan } from "../schema";

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
  needed: (number | null)[];
  /** Absent in what older programs told. */
  shown?: boolean[];
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
  /** The settings of the trial that runs, or of the last one. */
  arm: number | null;
  result: Report | null;
  end: End | null;
  /** What one must know while it runs. */
  warnings: string[];
}

const NOTHING: Heard = { begin: null, trials: [], rounds: [], samples: [], arm: null, result: null, end: null, warnings: [] };
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

/** What is wished for. */
const GOALS: [string, string][] = [
  ["balanced", "speed, and less delay at the same speed"],
  ["goodput", "speed alone"],
  ["delay", "less delay at the same speed, first of all"],
];

/** An experiment: chosen and started, or watched by its name in the address. */
export function Experiment({ part }: { part: string }) {
  return (
    <>
      <h1>Experiment</h1>
      {part ? <Named id={part} /> : <Choose />}
    </>
  );
}

/** One that runs, or has run while this server did; others are in the journal. */
function Named({ id }: { id: string }) {
  const [run] = useRun(id);
  const kept = new URLSearchParams(location.search).get("of");
  useEffect(() => {
    if (run === "gone" && kept) go(`/report/${encodeURIComponent(kept)}`, "replace");
  }, [run]);
  if (run === null) return <p class="quiet">Reading …</p>;
  if (run === "gone") {
    return (
      <p>
        {forgotten("experiment")} What was measured is in the <a href="/history">History</a>.
      </p>
    );
  }
  return <Watch key={run.id} run={run} />;
}

/** What is running already, since only one thing is measured at a time. */
export function Running({ kind, name, to }: { kind: Run["kind"]; name: string; to: (run: Run) => string }) {
  const [runs] = useGet<Run[]>("runs");
  const running = runs.state === "done" ? runs.data.find((run) => run.kind === kind && !run.end) : undefined;
  if (!running) return null;
  return (
    <p class="note">
      {name} is running already. <a href={to(running)}>Watch it</a>
    </p>
  );
}

/** Levels by knob in the address: `rwin=4x,64x;mtu;cc`. A semicolon that was typed among levels stays one of them. */
const shortened = (knobs: Record<string, string>): string => Object.entries(knobs).map(([knob, levels]) => (levels ? `${knob}=${levels.replaceAll("%", "%25").replaceAll(";", "%3B")}` : knob)).join(";");
const lengthened = (text: string): Record<string, string> =>
  Object.fromEntries(text.split(";").filter(Boolean).map((one): [string, string] => [one.split("=")[0]!, one.split("=").slice(1).join("=").replaceAll("%3B", ";").replaceAll("%25", "%")]));

/** The fields at first. */
const FIRST = { vary: "rwin;mtu;cc", budget: "", trial: "", direction: "down", workload: "bulk", goal: "balanced", baseline: "", arms: "", hold: "", comment: "" };

/** Settings that stand in one field: `cc=reno,mtu=1400`. */
const assigned = (text: string): Record<string, string> =>
  Object.fromEntries(text.split(",").filter((one) => one.trim()).map((one): [string, string] => [one.split("=")[0]!.trim(), one.split("=").slice(1).join("=").trim()]));
/** Candidates that stand in one field, apart by semicolons. */
const several = (text: string): string[] => text.split(";").map((arm) => arm.trim()).filter(Boolean);

function Choose() {
  const place = usePlace({
    lab: "adsl",
    real: "on the real path",
    label: "Server",
    placeholder: "https://example.org/file.iso",
    hint: "A file on a web or FTP server, or iperf3://HOST. It is asked politely, one connection at a time.",
    doing: "Measuring a real path",
  });
  const [{ vary, budget, trial, direction, workload, goal, baseline, arms, hold, comment }, set] = useQuery(FIRST);
  const knobs = lengthened(vary);
  const setKnobs = (knobs: Record<string, string>): void => set({ vary: shortened(knobs) });
  const [busy, problem, run] = useDoing();
  const levels = Object.fromEntries(Object.entries(knobs).filter(([, levels]) => levels.trim() !== ""));
  const request = {
    ...place.request,
    knobs: Object.keys(knobs),
    levels,
    direction,
    workload,
    goal,
    ...(budget.trim() && { budget: budget.trim() }),
    ...(trial.trim() && { trial: trial.trim() }),
    ...(baseline.trim() && { baseline: baseline.trim() }),
    ...(several(arms).length > 0 && { arms: several(arms) }),
    ...(hold.trim() && { hold: assigned(hold) }),
    ...(comment.trim() && { comment: comment.trim() }),
  };
  const something = Object.keys(knobs).length > 0 || several(arms).length > 0;
  const sensible = !place.real && something;
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
        run(() => post<Run>("experiments", request).then((run) => go(`/experiment/${run.id}`)));
      }}
    >
      <p class="lead">
        Settings in random order, your current one always among them. In the lab real kernels meet over an emulated path, and nothing on this
        host changes.
      </p>
      <Running kind="experiment" name="An experiment" to={({ id }) => `/experiment/${id}`} />
      {place.fields}
      {place.preset && <Facts lab={place.preset} />}
      {place.token}
      <fieldset>
        <legend>What to vary</legend>
        <p class="quiet">Leave a field empty and suitable values are chosen.</p>
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
        <Choice label="Workload" value={workload} set={(workload) => set({ workload })} options={WORKLOADS} />
        <Choice
          label="Direction"
          value={direction}
          set={(direction) => set({ direction })}
          options={[
            ["down", "down, to the client"],
            ["up", "up, to the server"],
          ]}
        />
        <Choice label="Goal" value={goal} set={(goal) => set({ goal })} options={GOALS} />
        <Text label="Budget" value={budget} set={(budget) => set({ budget })} placeholder="150s" hint="10min, 200MB or 60 trials; where a path is slow, eight rounds" />
        <Text label="Each trial" value={trial} set={(trial) => set({ trial })} placeholder="from the RTT" hint="200ms to 1h" />
      </div>
      <details open={[baseline, arms, hold, comment].some(Boolean)}>
        <summary>Another baseline, settings that belong together, fixed settings, a note</summary>
        <div class="row">
          <Text label="Baseline" value={baseline} set={(baseline) => set({ baseline })} placeholder="your current settings" hint="What all others are compared with: os, windows-98, linux-2.6.32, or rwin=8192,mtu=576" />
          <Text label="Settings that belong together" value={arms} set={(arms) => set({ arms })} placeholder="probing: pmtud=on,mtu-probing=on" hint="Each NAME: KNOB=LEVEL,…; several apart by semicolons" />
          <Text label="Fixed settings" value={hold} set={(hold) => set({ hold })} placeholder="cc=reno" hint="In every trial, the baseline's included" />
          <Text label="Note" value={comment} set={(comment) => set({ comment })} placeholder="" hint="Stored with the experiment" />
        </div>
      </details>
      {plan && !unplanned && <Planned plan={plan} />}
      {(problem ?? unplanned) && <Trouble problem={(problem ?? unplanned)!} />}
      <button type="submit" class="primary" disabled={busy || !something || !place.complete}>
        Start
      </button>
      <AsCommand
        text={command(
          "tune",
          ...(place.real ? [place.target] : [["--lab", place.preset ?? "drawn.toml"] as [string, string]]),
          ["--knobs", Object.keys(knobs).join(",")],
          ...Object.entries(levels).map(([knob, level]): [string, string] => ["--levels", `${knob}=${level}`]),
          ["--workload", workload === "bulk" ? "" : workload],
          ["--direction", direction === "down" ? "" : direction],
          ["--goal", goal === "balanced" ? "" : goal],
          ["--budget", budget.trim()],
          ["--trial", trial.trim()],
          ["--baseline", baseline.trim()],
          ...several(arms).map((arm): [string, string] => ["--arm", arm]),
          ["--hold", hold.replaceAll(" ", "")],
          ["--comment", comment.trim()],
        )}
      />
    </form>
  );
}

/** What would be compared, and how long it may take: the levels filled in from the path. */
function Planned({ plan }: { plan: Plan }) {
  return (
    <details class="planned">
      <summary>
        {plan.arms.length} settings, trials of {duration(plan.trial_s)}, at most {plan.max_trials} of them: about {duration(plan.expected_s)} if it needs all
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
    case "start":
      return { ...heard, arm: (data as { phase: string; arm: number }).phase === "round" ? (data as { arm: number }).arm : null };
    case "sample":
      return { ...heard, samples: next(heard.samples, data as Sample) };
    case "trial":
      return { ...heard, arm: null, samples: [], trials: [...heard.trials, data as Trial] };
    case "round":
      return { ...heard, rounds: [...heard.rounds, data as Round] };
    case "result":
      return { ...heard, result: data as Report };
    case "end":
      return { ...heard, end: data as End };
    case "warning":
      return { ...heard, warnings: [...heard.warnings, (data as { text: string }).text] };
    default:
      return heard;
  }
}

/** The samples of one transfer: where time goes back, another one has begun. */
function next(samples: Sample[], sample: Sample): Sample[] {
  const last = samples.at(-1);
  return last && sample.t_us + 150_000 < last.t_us ? [sample] : [...samples, sample];
}

function Watch({ run }: { run: Run }) {
  const gone = (): void => (kept.current ? go(`/report/${encodeURIComponent(kept.current)}`, "replace") : go("/history", "replace"));
  const kept = useRef(run.experiment ?? null);
  const heard = useEvents(run, NOTHING, take, gone);
  const id = heard.begin?.id;
  useEffect(() => {
    kept.current = id ?? kept.current;
    // Should the server end, the address still leads to what was measured.
    if (id) go(`/experiment/${run.id}?of=${encodeURIComponent(id)}`, "replace");
  }, [id]);
  const [, problem, doing] = useDoing();
  const stop = (): void => doing(() => remove(`experiments/${run.id}`));
  return (
    <>
      <p class="lead">
        {String(run.request.lab ?? run.request.target ?? "a path drawn in Lab")}
        {heard.begin && <span class="quiet"> · in the journal as {heard.begin.id}</span>}
      </p>
      {heard.warnings.map((text) => (
        <p key={text} class="note" role="status">
          {plain(text)}
        </p>
      ))}
      {!heard.end && <Progress heard={heard} stop={stop} />}
      {!heard.end && <Now samples={heard.samples} {...(running(heard) ? { of: running(heard) } : {})} />}
      {problem && <Trouble problem={problem} />}
      {heard.end?.error && <Trouble problem={heard.end.error} />}
      {heard.end && (
        <div class="buttons">
          <a class="button" href={`/experiment?${again(run)}`}>
            Another experiment
          </a>
          {id && (
            <a class="button" href={`/report/${encodeURIComponent(id)}`}>
              Its report: to keep, to share, to delete
            </a>
          )}
        </div>
      )}
      {heard.result && <Verdict report={heard.result} />}
      <Evidence heard={heard} />
      <Goodput heard={heard} />
      <Trials heard={heard} />
    </>
  );
}

/** The form as this run had it. */
function again(run: Run): URLSearchParams {
  const { lab, target, path, knobs, levels, arms, hold, ...others } = run.request as Record<string, unknown> & { knobs?: string[]; levels?: Record<string, string>; arms?: string[]; hold?: Record<string, string> };
  const said: Record<string, unknown> = {
    ...Object.fromEntries(Object.keys(FIRST).map((name) => [name, others[name]])),
    lab: path ? DRAWN : lab,
    where: target ? "target" : null,
    target,
    vary: shortened(Object.fromEntries((knobs ?? []).map((knob) => [knob, levels?.[knob] ?? ""]))),
    arms: arms?.join("; "),
    hold: Object.entries(hold ?? {}).map((one) => one.join("=")).join(","),
  };
  return new URLSearchParams(Object.entries(said).filter((one): one is [string, string] => typeof one[1] === "string"));
}

/** What the settings that run are called. */
const running = ({ begin, arm }: Heard): string => (arm === null ? "" : (begin?.arms[arm] ?? ""));

/** How long the trials that are left take at the pace so far: an estimate, since it may end earlier, and what is spoilt is repeated. */
function timeLeft({ begin, rounds }: Heard, counted: number): string {
  if (!begin) return "";
  const last = rounds.at(-1);
  const each = last && last.trials > 0 ? last.spent_s / last.trials : begin.expected_s / Math.max(begin.max_trials, 1);
  return `about ${duration(Math.max(begin.max_trials - counted, 0) * each)} left`;
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
          `${counted} of at most ${heard.begin.max_trials} trials; ${timeLeft(heard, counted)}` +
            (round ? ` · round ${round.rounds}, ${round.left} settings left` : "")}
      </p>
      {heard.begin ? <progress max={heard.begin.max_trials} value={counted} aria-label="Trials" /> : <progress aria-label="Preparing" />}
      {running(heard) && (
        <p>
          Running: <strong>{running(heard)}</strong>
        </p>
      )}
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
export function Now({ samples, of }: { samples: Sample[]; of?: string }) {
  const data = useMemo(() => {
    // What has arrived, where that is known: acknowledgements come in bursts.
    const end = samples.some((sample) => sample.end === "receiver") ? "receiver" : "sender";
    const own = samples.filter((sample) => sample.end === end);
    const window = windowOf(samples.map(({ rtt }) => rtt));
    return {
      x: own.map((sample) => sample.t_us / 1e6),
      lines: [{ label: "Goodput", values: rates(own.map((sample) => sample.t_us), own.map((sample) => sample.bytes), window) }],
    };
  }, [samples]);
  if (data.x.length < 2) return null;
  return (
    <Section id="now" title={of ? `The transfer that runs: ${of}` : "The transfer that runs"}>
      <Chart label={`Goodput of the last ${data.x.at(-1)?.toFixed(1)} s`} xLabel="Time, s" yLabel="Goodput, Mbit/s" height={180} format={mbit} {...data} />
    </Section>
  );
}

/** How far the evidence for each setting is, and what a claim needs: one row each. */
function Evidence({ heard }: { heard: Heard }) {
  const arms = heard.begin?.arms ?? [];
  const last = heard.rounds.at(-1);
  if (!last) return null;
  const rows = arms.slice(1).map((label, place) => {
    const [have, need] = [last.evidence[place + 1] ?? 1, last.needed[place + 1] ?? null];
    const share = need === null ? 0 : have / need;
    return { label, share, bar: onLine(have, need), running: heard.arm === place + 1, text: `${evidence(have)} of ${need === null ? "–" : evidence(need)}`, proven: last.shown?.[place + 1] ?? share >= 1 };
  });
  const most = rows.reduce((best, row) => (row.bar > best.bar || (row.bar === best.bar && row.share > best.share) ? row : best), rows[0]!);
  if (!most) return null;
  return (
    <Section id="evidence" title="Evidence">
      <p>
        Most so far: <strong>{most.text}</strong>, for {most.label}. A setting whose bar reaches the line has what its own claim needs: it is proven to be faster, unless trials were interrupted or came to nothing. Bars are logarithmic and begin at 1 : 1, which is no evidence.
      </p>
      <Strips label={`Evidence for ${rows.length} settings after round ${last.rounds}; the most is ${most.text}`} rule={NEEDED} rows={rows.map(({ label, bar, running, text, proven }) => ({ label, running, text: proven ? `${text}, proven` : text, bar }))} />
    </Section>
  );
}

/** Goodput of every trial that counts, or what else its workload is known by: one row for each setting. */
function Goodput({ heard }: { heard: Heard }) {
  const measured = heard.begin?.measured ?? GOODPUT;
  const arms = heard.begin?.arms ?? [];
  const trials = heard.trials.filter((trial) => trial.phase === "round" && trial.status === "completed" && trial.figure !== null);
  if (trials.length === 0) return null;
  const figures = trials.map((trial) => trial.figure ?? 0);
  const [low, high] = [Math.min(...figures), Math.max(...figures)];
  // The ends of the axis are these figures, so that they stand there.
  const place = (figure: number): number => (high > low ? (figure - low) / (high - low) : 0.5);
  const rows = arms.map((label, arm) => {
    const own = trials.filter((trial) => trial.arm === arm).map((trial) => trial.figure ?? 0);
    const middle = median(own);
    return {
      label,
      running: heard.arm === arm,
      text: middle === null ? "–" : `${figure(measured, middle)} (${own.length})`,
      dots: own.map((value) => ({ at: place(value), text: figure(measured, value) })),
      ...(middle === null ? {} : { mark: place(middle) }),
    };
  });
  return (
    <Section id="goodput" title={title(measured)}>
      <Strips label={`${title(measured)} of ${trials.length} trials of ${arms.length} settings, each with its median`} rows={rows} ends={[figure(measured, low), figure(measured, high)]} />
      <p class="quiet">Each dot is a trial, the line its setting's median, with how many trials there were. {measured.better === "smaller" ? "Further left is better." : "Further right is better."} The axis doesn't begin at zero.</p>
      <Downloads name={`trials-${heard.begin?.id ?? "now"}`} rows={[["trial", "setting", measured.name, measured.unit], ...trials.map((trial, at) => [at + 1, arms[trial.arm] ?? "", trial.figure, measured.unit])]} />
    </Section>
  );
}

function median(values: number[]): number | null {
  if (values.length === 0) return null;
  const sorted = [...values].sort((a, b) => a - b);
  const half = sorted.length >> 1;
  return sorted.length % 2 ? sorted[half]! : (sorted[half - 1]! + sorted[half]!) / 2;
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
