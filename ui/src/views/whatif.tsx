import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { get, problemOf, type Problem } from "../api";
import { Chart } from "../chart";
import { mbit, percent, rate, size, times } from "../format";
import { AsCommand, command } from "../keep";
import { Choice, Field, Figure, Section, Trouble } from "../parts";
import { useQuery } from "../route";
import { rates, windowOf, type Columns } from "../run";
import type { PredictAnswer as Prediction, PredictedArm as Predicted } from "../schema";

/** A slider: its positions are steps of a logarithm, and the lowest one may stand for something else. */
interface Scale {
  label: string;
  least: number;
  most: number;
  /** What the lowest position means. */
  lowest?: string;
  text: (value: number) => string;
}

const STEPS = 200;

/** The value of a position. */
function at(scale: Scale, position: number): number {
  return scale.least * (scale.most / scale.least) ** (position / STEPS);
}

const position = (scale: Scale, value: number): number => Math.round((STEPS * Math.log(value / scale.least)) / Math.log(scale.most / scale.least));

const SCALES = {
  rate: { label: "Rate", least: 64e3, most: 1e9, text: (value) => rate(value) },
  rtt: { label: "RTT", least: 1, most: 600, text: (value) => `${value < 10 ? value.toFixed(1) : value.toFixed(0)} ms` },
  loss: { label: "Loss", least: 1e-5, most: 0.1, lowest: "none", text: (value) => `${(value * 100).toPrecision(2)} %` },
  queue: { label: "Queue", least: 3000, most: 16 * 2 ** 20, lowest: "one BDP", text: size },
  rwin: { label: "RWIN", least: 4096, most: 64 * 2 ** 20, lowest: "grows by itself", text: size },
  initcwnd: { label: "initcwnd", least: 1, most: 100, text: (value) => `${Math.round(value)} segments` },
} satisfies Record<string, Scale>;

type Name = keyof typeof SCALES;

const FIRST: Record<Name, number> = {
  rate: position(SCALES.rate, 100e6),
  rtt: position(SCALES.rtt, 80),
  loss: 0,
  queue: 0,
  rwin: 0,
  initcwnd: position(SCALES.initcwnd, 10),
};

const NAMES = Object.keys(SCALES) as Name[];
/** All of it in the address. */
const SAID = { ...(Object.fromEntries(NAMES.map((name) => [name, String(FIRST[name])])) as Record<Name, string>), cc: "cubic", amount: "3MB" };

/** A position that the address says, if it can be one. */
function clamped(text: string, usual: number): number {
  const value = Math.round(Number(text));
  return Number.isFinite(value) ? Math.min(Math.max(value, 0), STEPS) : usual;
}

/** What the model is asked. */
function question(positions: Record<Name, number>, cc: string, amount: string): string {
  const value = (name: Name): number => at(SCALES[name], positions[name]);
  const set = [`initcwnd=${Math.round(value("initcwnd"))}`, `cc=${cc}`, ...(positions.rwin > 0 ? [`rwin=${Math.round(value("rwin"))}`] : [])];
  const lossy = positions.loss > 0;
  return new URLSearchParams({
    rate: `${Math.round(value("rate"))}`,
    rtt: `${Math.round(value("rtt") * 1e3)}us`,
    ...(lossy ? { loss: `${(value("loss") * 100).toPrecision(3)}%`, seeds: "5" } : { seeds: "1" }),
    ...(positions.queue > 0 ? { queue: `${Math.round(value("queue"))}` } : {}),
    set: set.join(","),
    size: amount,
    samples: "true",
  }).toString();
}

/** Asks as one drags: one question at a time, and when it is answered the newest one. */
function usePrediction(ask: string): [Prediction | null, number, Problem | null] {
  const [answer, setAnswer] = useState<{ data: Prediction; took: number } | null>(null);
  const [problem, setProblem] = useState<Problem | null>(null);
  const newest = useRef(ask);
  const busy = useRef(false);
  newest.current = ask;
  useEffect(() => {
    const next = async (): Promise<void> => {
      if (busy.current) return;
      busy.current = true;
      for (let asked = ""; asked !== newest.current; ) {
        asked = newest.current;
        const begun = performance.now();
        try {
          setAnswer({ data: await get<Prediction>(`predict?${asked}`), took: performance.now() - begun });
          setProblem(null);
        } catch (error) {
          setProblem(problemOf(error));
        }
      }
      busy.current = false;
    };
    void next();
  }, [ask]);
  return [answer?.data ?? null, answer?.took ?? 0, problem];
}

/** Knobs and path to turn, and what the model says. */
export function WhatIf() {
  const [said, set] = useQuery(SAID);
  const { cc, amount } = said;
  const positions = Object.fromEntries(NAMES.map((name) => [name, clamped(said[name], FIRST[name])])) as Record<Name, number>;
  const asked = question(positions, cc, amount);
  const [prediction, took, problem] = usePrediction(asked);
  const slider = (name: Name) => <Slider key={name} scale={SCALES[name]} value={positions[name]} set={(value) => set({ [name]: String(value) })} />;
  return (
    <>
      <h1>What if</h1>
      <p class="lead">A model of Linux TCP answers as you drag. It is no evidence: it says what is worth measuring.</p>
      <div class="sliders">
        <fieldset>
          <legend>The path</legend>
          {(["rate", "rtt", "loss", "queue"] as const).map(slider)}
        </fieldset>
        <fieldset>
          <legend>The settings</legend>
          {(["rwin", "initcwnd"] as const).map(slider)}
          <Choice label="Congestion control" value={cc} set={(cc) => set({ cc })} options={["cubic", "reno", "bbr", "newreno", "vegas", "cdg", "htcp", "illinois", "westwood"].map((name): [string, string] => [name, name])} />
          <Choice label="Transfer" value={amount} set={(amount) => set({ amount })} options={["14kB", "100kB", "1MB", "3MB", "10MB", "30MB"].map((name): [string, string] => [name, name.replace(/(\d)([kM])/, "$1 $2")])} />
        </fieldset>
      </div>
      {problem && <Trouble problem={problem} />}
      {prediction && <Answer prediction={prediction} took={took} />}
      <AsCommand text={asCommand(asked)} />
    </>
  );
}

/** The question for a terminal. */
function asCommand(asked: string): string {
  const query = [...new URLSearchParams(asked)].filter(([name]) => name !== "samples");
  return command("predict", ...query.flatMap(([name, value]) => (name === "set" ? value.split(",").map((one): [string, string] => ["--set", one]) : [[`--${name}`, value] as [string, string]])));
}

function Slider({ scale, value, set }: { scale: Scale; value: number; set: (value: number) => void }) {
  const text = value === 0 && scale.lowest ? scale.lowest : scale.text(at(scale, value));
  return (
    <div class="slider">
      <Field label={scale.label}>
        <input type="range" min={0} max={STEPS} value={value} aria-valuetext={text} onInput={(event) => set(Number(event.currentTarget.value))} />
      </Field>
      <output>{text}</output>
    </div>
  );
}

const time = (us: number | null): string => (us === null ? "not within an hour" : us < 1e6 ? `${(us / 1e3).toFixed(0)} ms` : `${(us / 1e6).toFixed(2)} s`);

function Answer({ prediction, took }: { prediction: Prediction; took: number }) {
  const [usual, asked] = prediction.arms;
  const data = useMemo(() => curves(usual?.samples ?? null, asked?.samples ?? null, prediction.path_facts.rtt_us), [prediction]);
  if (!usual || !asked) return null;
  const error = prediction.model_error;
  return (
    <>
      <dl class="figures answers" aria-live="polite">
        <Figure name="Goodput">{rate(asked.goodput_bps)}</Figure>
        <Figure name="Completed after">{time(asked.completion_us ?? null)}</Figure>
        <Figure name="Against the defaults">{asked.works_instead ? "works, they don't" : times(asked.gain == null ? null : 1 + asked.gain)}</Figure>
        <Figure name="Queueing delay">{time(asked.queueing_delay_us)}</Figure>
        <Figure name="Retransmitted">{percent(asked.retransmitted_share)}</Figure>
        <Figure name="BDP">{size(prediction.path_facts.bdp_bytes)}</Figure>
        <Figure name="Physical limit">{rate(prediction.path_facts.physical_goodput_bps)}</Figure>
      </dl>
      {prediction.random && <p class="quiet">{chance(prediction.seeds, asked)}</p>}
      <p class="quiet">
        {error
          ? `Known error on ${error.region === "grid" ? "10 to 1000 Mbit/s" : error.region} paths, against Linux ${error.kernel} (${error.transfers} transfers): median ${percent(error.median)}, nine in ten within ${percent(error.p90)}, worst ${percent(error.worst)}. `
          : "The model was never compared with a kernel on such a path, or in such a workload. "}
        Answered in <span class="took">{took.toFixed(0)}</span> ms.
      </p>
      <Section id="over-time" title="Over time">
        <div class="pair">
          <Chart sync="what-if" label="Goodput over time, with these settings and with the usual ones" xLabel="Time, s" yLabel="Goodput, Mbit/s" height={240} format={mbit} x={data.x} lines={data.rate} />
          <Chart sync="what-if" label="Congestion window over time, with these settings and with the usual ones" xLabel="Time, s" yLabel="cwnd, KiB" height={240} format={(value) => value.toFixed(0)} x={data.x} lines={data.cwnd} />
        </div>
      </Section>
    </>
  );
}

/** What is left to chance: the figures are medians, and the charts are of one run. */
function chance(seeds: number, { goodput_p5_bps, goodput_p95_bps }: Predicted): string {
  if (seeds < 2) return "One random run: another one would differ.";
  const [least, most] = [rate(goodput_p5_bps), rate(goodput_p95_bps)];
  // Of so few runs the outermost are the ends of any range.
  const spread = least === most ? `goodput ${least} in ${seeds > 10 ? "nine in ten" : "each"}` : `goodput ${seeds > 10 ? "of nine in ten between" : "between"} ${least} and ${most}`;
  return `Medians of ${seeds} random runs, ${spread}; the charts are of one of them.`;
}

/** Both over one axis, which has the times of both: samples of a long transfer are further apart. */
function curves(usual: Columns | null, asked: Columns | null, rtt_us: number) {
  const times = [...new Set([...(usual?.t_us ?? []), ...(asked?.t_us ?? [])])].sort((a, b) => a - b);
  const line = (label: string, of: Columns | null, values: (of: Columns) => number[], reference: boolean) => {
    const own = of ? values(of) : [];
    const at = new Map(of?.t_us.map((us, place) => [us, own[place] ?? null]));
    return { label, reference, values: times.map((us) => at.get(us) ?? null) };
  };
  const both = (values: (of: Columns) => number[]) => [line("these settings", asked, values, false), line("the usual ones", usual, values, true)];
  return { x: times.map((us) => us / 1e6), rate: both((of) => rates(of.t_us, of.bytes, Math.max(rtt_us, windowOf(of.rtt)))), cwnd: both((of) => of.snd_cwnd.map((bytes) => bytes / 1024)) };
}
