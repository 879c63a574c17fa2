import { useEffect, useRef } from "preact/hooks";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";

export interface Line {
  label: string;
  values: (number | null)[];
  /** A reference, such as a threshold: dashed, and in the colour of text. */
  reference?: boolean;
  /** Which colour, where the order of lines doesn't say it. */
  colour?: number;
  /** Points without a line between them. */
  points?: boolean;
}

interface Props {
  /** What the chart shows, for those who can't see it. */
  label: string;
  xLabel: string;
  yLabel: string;
  x: number[];
  lines: Line[];
  /** A logarithmic horizontal axis, to the base of two. */
  logX?: boolean;
  /** A logarithmic vertical axis. */
  log?: boolean;
  format: (value: number) => string;
  height?: number;
}

/** Colours that can be told apart by those who see fewer, in light and in dark; then dashes tell the rest. */
const COLOURS = ["--line-1", "--line-2", "--line-3", "--line-4", "--line-5", "--line-6"];
const DASHES = [[], [7, 4], [2, 3]];

const css = (name: string): string => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

function series(line: Line, place: number): uPlot.Series {
  if (line.reference) {
    return { label: line.label, stroke: css("--text-2"), width: 1.5, dash: [5, 5], points: { show: false } };
  }
  const stroke = css(COLOURS[place % COLOURS.length] ?? "--line-1");
  const dash = DASHES[Math.floor(place / COLOURS.length) % DASHES.length] ?? [];
  if (line.points) {
    return { label: line.label, stroke, paths: () => null, points: { show: true, size: 7, fill: stroke, stroke } };
  }
  const few = line.values.length <= 60;
  return { label: line.label, stroke, width: 2, dash, spanGaps: true, points: { show: few, size: 5, fill: stroke } };
}

function options(props: Props, width: number): uPlot.Options {
  const axis = { stroke: css("--text-2"), grid: { stroke: css("--grid"), width: 1 }, ticks: { stroke: css("--grid"), width: 1 } };
  const font = "12px system-ui, sans-serif";
  let lines = 0;
  const format = (value: number | null): string => (value === null || value === undefined ? "–" : props.format(value));
  return {
    width,
    height: props.height ?? 260,
    padding: [12, 28, 0, 0],
    legend: { show: props.lines.length > 1 },
    cursor: { drag: { x: true, y: false } },
    scales: { x: props.logX ? { time: false, distr: 3, log: 2 } : { time: false }, y: props.log ? { distr: 3, log: 10 } : { range: (_, low, high) => margins(low, high) } },
    axes: [
      { ...axis, label: props.xLabel, labelFont: font, font, labelSize: 24, size: 34, values: (_, splits) => splits.map(String), incrs: [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 1e4, 1e5, 1e6] },
      {
        ...axis,
        label: props.yLabel,
        labelFont: font,
        font,
        size: 64,
        labelSize: 24,
        values: (_, splits) => splits.map((split) => (split === null ? "" : props.format(split))),
        ...(props.log ? { filter: powers } : {}),
      },
    ],
    series: [
      { label: props.xLabel },
      ...props.lines.map((line) => ({
        ...series(line, line.colour ?? (line.reference ? 0 : lines++)),
        value: (_: uPlot, value: number | null) => format(value),
      })),
    ],
  };
}

/** On a logarithmic axis only whole powers of ten are named. */
function powers(_: uPlot, splits: number[]): (number | null)[] {
  return splits.map((split) => (Math.abs(Math.log10(split) - Math.round(Math.log10(split))) < 1e-9 ? split : null));
}

function margins(low: number | null, high: number | null): [number, number] {
  const [from, to] = [low ?? 0, high ?? 1];
  const room = (to - from || Math.abs(to) || 1) * 0.08;
  return [from >= 0 ? Math.max(0, from - room) : from - room, to + room];
}

/** A chart of lines over a common horizontal axis; drag to zoom, double-click to see everything again. */
export function Chart(props: Props) {
  const box = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | null>(null);
  const shape = JSON.stringify([props.lines.map((line) => line.label), props.log, props.logX, props.xLabel, props.yLabel, props.x.length > 60]);
  const data = (): uPlot.AlignedData => [props.x, ...props.lines.map((line) => line.values)] as uPlot.AlignedData;

  useEffect(() => {
    const at = box.current;
    if (!at) return;
    const draw = (): void => {
      plot.current?.destroy();
      plot.current = new uPlot(options(props, at.clientWidth || 320), data(), at);
    };
    draw();
    const sized = new ResizeObserver(() => plot.current?.setSize({ width: at.clientWidth || 320, height: props.height ?? 260 }));
    sized.observe(at);
    const scheme = matchMedia("(prefers-color-scheme: dark)");
    scheme.addEventListener("change", draw);
    return () => {
      sized.disconnect();
      scheme.removeEventListener("change", draw);
      plot.current?.destroy();
      plot.current = null;
    };
  }, [shape]);

  useEffect(() => plot.current?.setData(data()), [props.x, props.lines]);

  return <div class="chart" role="img" aria-label={props.label} ref={box} />;
}
