import { useEffect, useMemo, useRef } from "preact/hooks";
import uPlot from "uplot";
import { css, Keep } from "./chart";
import { Levels } from "./levels";

/** The part of the time that is seen, s. */
export type Span = [number, number];

interface Props {
  label: string;
  yLabel: string;
  /** Seconds, ascending. */
  x: Float64Array;
  y: Float64Array;
  colour: number;
  span: Span;
  setSpan: (span: Span) => void;
  format: (value: number) => string;
}

/** So many points a pixel at most: a level has a quarter of the next finer one's. */
const A_PIXEL = 3;

/** A part of all that there is: never outside of it, and never nothing. */
export function within([low, high]: Span, [from, to]: Span): Span {
  const wide = Math.min(Math.max(high - low, (to - from) / 1e6), to - from);
  const begin = Math.min(Math.max(low, from), to - wide);
  return [begin, begin + wide];
}

/** A long series over time. Drag to move, turn the wheel with Ctrl to zoom, double-click to see everything again. */
export function TimeChart(props: Props) {
  const box = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | null>(null);
  const read = useRef<HTMLOutputElement>(null);
  const levels = useMemo(() => new Levels(props.x, props.y), [props.x, props.y]);
  const now = useRef({ ...props, levels });
  now.current = { ...props, levels };

  const show = (): void => {
    const { span, levels } = now.current;
    const chart = plot.current;
    if (!chart) return;
    const part = levels.part(span[0], span[1], (chart.width || 320) * A_PIXEL);
    chart.batch(() => {
      chart.setData(part as uPlot.AlignedData, false);
      chart.setScale("x", { min: span[0], max: span[1] });
      chart.setScale("y", { min: 0, max: levels.most * 1.08 || 1 });
    });
  };

  useEffect(() => {
    const at = box.current;
    if (!at) return;
    const draw = (): void => {
      plot.current?.destroy();
      plot.current = new uPlot(options(now.current, at.clientWidth || 320, read), [[], []], at);
      show();
    };
    draw();
    const sized = new ResizeObserver(() => {
      plot.current?.setSize({ width: at.clientWidth || 320, height: HEIGHT });
      show();
    });
    sized.observe(at);
    const scheme = matchMedia("(prefers-color-scheme: dark)");
    scheme.addEventListener("change", draw);
    const leave = pan(at, plot, now);
    return () => {
      leave();
      sized.disconnect();
      scheme.removeEventListener("change", draw);
      plot.current?.destroy();
      plot.current = null;
    };
  }, []);
  useEffect(show, [levels, props.span[0], props.span[1]]);

  const table = (): (string | number | null)[][] => [["time, s", props.yLabel], ...Array.from(props.x, (x, at) => [x, props.y[at] ?? null])];
  return (
    <figure class="chart">
      <div class="time" role="img" aria-label={props.label} ref={box} />
      <Keep label={props.label} plot={() => plot.current} table={table} />
      <output class="read" ref={read} />
    </figure>
  );
}

const HEIGHT = 220;

/** What is under the pointer, here and in the charts beside it. */
function tell(plot: uPlot, props: Props, out: HTMLOutputElement | null): void {
  const at = plot.cursor.idx;
  const [x, y] = at === null || at === undefined ? [null, null] : [plot.data[0][at], plot.data[1]?.[at]];
  if (out) out.textContent = x === null || x === undefined ? "" : `at ${x.toFixed(2)} s: ${y === null || y === undefined ? "–" : props.format(y)} (${props.yLabel})`;
}

function options(props: Props, width: number, read: { current: HTMLOutputElement | null }): uPlot.Options {
  const axis = { stroke: css("--text-2"), grid: { stroke: css("--grid"), width: 1 }, ticks: { stroke: css("--grid"), width: 1 } };
  const font = "12px system-ui, sans-serif";
  return {
    width,
    height: HEIGHT,
    padding: [12, 28, 0, 0],
    legend: { show: false },
    cursor: { drag: { x: false, y: false }, y: false, sync: { key: "time" } },
    hooks: { setCursor: [(plot) => tell(plot, props, read.current)] },
    scales: { x: { time: false, auto: false }, y: { auto: false } },
    axes: [
      { ...axis, label: "Time, s", labelFont: font, font, labelSize: 24, size: 34 },
      { ...axis, label: props.yLabel, labelFont: font, font, size: 64, labelSize: 24, values: (_, splits) => splits.map(props.format) },
    ],
    series: [{}, { stroke: css(`--line-${props.colour}`), width: 1, points: { show: false } }],
  };
}

/** Moves and zooms; at most once a frame something is drawn. */
function pan(at: HTMLElement, plot: { current: uPlot | null }, now: { current: Props & { levels: Levels } }): () => void {
  let [from, span, waiting] = [0, now.current.span, 0];
  let dragged: number | null = null;
  const set = (next: Span): void => {
    cancelAnimationFrame(waiting);
    waiting = requestAnimationFrame(() => now.current.setSpan(within(next, now.current.levels.ends)));
  };
  const seconds = (pixels: number): number => (pixels / (plot.current?.over.clientWidth || 1)) * (span[1] - span[0]);
  const down = (event: PointerEvent): void => {
    [dragged, from, span] = [event.pointerId, event.clientX, now.current.span];
    at.setPointerCapture(event.pointerId);
  };
  const move = (event: PointerEvent): void => {
    if (event.pointerId !== dragged) return;
    const by = seconds(from - event.clientX);
    set([span[0] + by, span[1] + by]);
  };
  const up = (): void => {
    dragged = null;
  };
  const wheel = (event: WheelEvent): void => {
    if (!event.ctrlKey) return;
    event.preventDefault();
    span = now.current.span;
    const over = plot.current?.over.getBoundingClientRect();
    const middle = span[0] + seconds(event.clientX - (over?.left ?? 0));
    const times = Math.exp(event.deltaY / 300);
    set([middle - (middle - span[0]) * times, middle + (span[1] - middle) * times]);
  };
  const all = (): void => set(now.current.levels.ends);
  at.addEventListener("pointerdown", down);
  at.addEventListener("pointermove", move);
  at.addEventListener("pointerup", up);
  at.addEventListener("pointercancel", up);
  at.addEventListener("wheel", wheel, { passive: false });
  at.addEventListener("dblclick", all);
  return () => {
    cancelAnimationFrame(waiting);
    at.removeEventListener("wheel", wheel);
  };
}

/** What dragging does, for those who have a keyboard. */
export function SpanButtons({ span, all, set }: { span: Span; all: Span; set: (span: Span) => void }) {
  const wide = span[1] - span[0];
  const zoom = (times: number): void => {
    const middle = (span[0] + span[1]) / 2;
    set(within([middle - (wide / 2) * times, middle + (wide / 2) * times], all));
  };
  const move = (share: number): void => set(within([span[0] + wide * share, span[1] + wide * share], all));
  const seen: [string, string, () => void][] = [
    ["←", "Earlier", () => move(-0.25)],
    ["→", "Later", () => move(0.25)],
    ["+", "Zoom in", () => zoom(0.5)],
    ["−", "Zoom out", () => zoom(2)],
    ["All", "All", () => set(all)],
  ];
  return (
    <div class="buttons" role="group" aria-label="Which part of the time is seen">
      {seen.map(([sign, name, act]) => (
        <button key={name} type="button" aria-label={name} title={name} onClick={act}>
          {sign}
        </button>
      ))}
      <span class="quiet mono">
        {span[0].toFixed(1)} to {span[1].toFixed(1)} s
      </span>
    </div>
  );
}
