import { useEffect, useRef, useState } from "preact/hooks";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { csv, keepFile } from "./keep";
import { beside, css, drawing, fileName, keepSvg, png, type Extras } from "./picture";

export interface Line {
  label: string;
  values: (number | null)[];
  /** A reference, such as a threshold: dashed, and in the colour of text. */
  reference?: boolean;
  /** Which colour, where the order of lines doesn't say it. */
  colour?: number;
  /** Points without a line between them. */
  points?: boolean;
  /** What each value may be by chance: bars around the points. */
  bars?: ([number, number] | null)[];
  /** What stands beside each point. */
  names?: (string | null)[];
  /** A value holds until the next one. */
  steps?: boolean;
}

export interface Props {
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
  /** What is counted on the horizontal axis has no parts. */
  whole?: boolean;
  /** Names on the horizontal axis, where it has no numbers. */
  names?: string[];
  height?: number;
  /** Charts with the same word show what they have at the same place. */
  sync?: string;
}

/** Colours that can be told apart by those who see fewer, in light and in dark; then dashes tell the rest. */
const COLOURS = ["--line-1", "--line-2", "--line-3", "--line-4", "--line-5", "--line-6"];
const DASHES = [[], [7, 4], [2, 3]];

/** What stands below a chart whose axis doesn't begin at 0. */
const CUT = "The vertical axis doesn't begin at 0.";

export { css };

function series(line: Line, place: number): uPlot.Series {
  if (line.reference) {
    return { label: line.label, stroke: css("--text-2"), width: 1.5, dash: [5, 5], spanGaps: true, points: { show: false } };
  }
  const stroke = css(COLOURS[place % COLOURS.length] ?? "--line-1");
  const dash = DASHES[Math.floor(place / COLOURS.length) % DASHES.length] ?? [];
  if (line.points) {
    return { label: line.label, stroke, width: 0, paths: () => null, points: { show: true, size: 7, fill: stroke, stroke } };
  }
  const few = line.values.length <= 60;
  if (line.steps) return { label: line.label, stroke, width: 2, dash, spanGaps: true, paths: uPlot.paths.stepped!({ align: 1 }), points: { show: false } };
  return { label: line.label, stroke, width: 2, dash, spanGaps: true, points: { show: few, size: 5, fill: stroke } };
}

/** Whether values have a zero that the axis doesn't show: differences look larger than they are. */
const isCut = (plot: uPlot, { log }: Props): boolean => !log && (plot.scales.y?.min ?? 0) > 0;

function options(props: Props, width: number, cut: (isCut: boolean) => void): uPlot.Options {
  const axis = { stroke: css("--text-2"), grid: { stroke: css("--grid"), width: 1 }, ticks: { stroke: css("--grid"), width: 1 } };
  const font = "12px system-ui, sans-serif";
  let lines = 0;
  const named = (splits: (number | null)[]): string[] => splits.map((split) => (split === null ? "" : props.names ? (props.names[split] ?? "") : String(split)));
  const format = (value: number | null): string => (value === null || value === undefined ? "–" : props.format(value));
  return {
    width,
    height: props.height ?? 260,
    padding: [12, 28, 0, 0],
    legend: { show: props.lines.length > 1 },
    cursor: { drag: { x: true, y: false }, ...(props.sync ? { sync: { key: props.sync } } : {}) },
    hooks: { draw: [(plot) => bars(plot, props.lines), (plot) => names(plot, props), (plot) => cut(isCut(plot, props))] },
    scales: { x: props.logX ? { time: false, distr: 3, log: 2 } : { time: false, ...(props.names ? { range: [-0.5, props.names.length - 0.5] } : {}) }, y: props.log ? { distr: 3, log: 10 } : { range: (_, low, high) => margins(...reach(props.lines, low, high)) } },
    axes: [
      { ...axis, label: props.xLabel, labelFont: font, font, labelSize: 24, size: 34, values: (_, splits) => named(splits), incrs: props.whole ? STEPS.filter((step) => step >= 1) : STEPS },
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

/** Distances between the marks of the horizontal axis. */
const STEPS = [0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1e3, 2e3, 5e3, 1e4, 1e5, 1e6, 2e6, 5e6, 1e7, 2e7, 5e7, 1e8, 1e9, 1e10, 1e11, 1e12];

/** Draws what values may be by chance. */
function bars(plot: uPlot, lines: Line[]): void {
  const { ctx } = plot;
  lines.forEach((line, place) => {
    if (!line.bars) return;
    ctx.save();
    ctx.strokeStyle = (plot.series[place + 1]?.stroke as unknown as (() => string) | undefined)?.() ?? css("--text-2");
    ctx.lineWidth = 2 * devicePixelRatio;
    ctx.beginPath();
    line.bars.forEach((bar, at) => {
      const x = plot.data[0][at];
      if (!bar || x === undefined) return;
      const across = plot.valToPos(x, "x", true);
      ctx.moveTo(across, plot.valToPos(bar[0], "y", true));
      ctx.lineTo(across, plot.valToPos(bar[1], "y", true));
    });
    ctx.stroke();
    ctx.restore();
  });
}

/** Writes the names of points beside them. */
function names(plot: uPlot, props: Props): void {
  const { ctx, bbox } = plot;
  ctx.save();
  ctx.fillStyle = css("--text");
  ctx.font = `${12 * devicePixelRatio}px system-ui, sans-serif`;
  const points = (extras(props).names ?? []).map(({ x, y, text }) => ({ x: plot.valToPos(x, "x", true), y: plot.valToPos(y, "y", true), text, width: ctx.measureText(text).width }));
  for (const { x, y, anchor, text } of beside(points, bbox, devicePixelRatio)) {
    ctx.textAlign = anchor === "start" ? "left" : "right";
    ctx.fillText(text, x, y);
  }
  ctx.restore();
}

/** On a logarithmic axis only whole powers of ten are named. */
function powers(_: uPlot, splits: number[]): (number | null)[] {
  return splits.map((split) => (Math.abs(Math.log10(split) - Math.round(Math.log10(split))) < 1e-9 ? split : null));
}

/** What is drawn, bars and all. */
function reach(lines: Line[], low: number | null, high: number | null): [number | null, number | null] {
  const ends = lines.flatMap((line) => line.bars ?? []).flatMap((bar) => bar ?? []);
  return ends.length === 0 ? [low, high] : [Math.min(low ?? Infinity, ...ends), Math.max(high ?? -Infinity, ...ends)];
}

function margins(low: number | null, high: number | null): [number, number] {
  const [from, to] = [low ?? 0, high ?? 1];
  const room = (to - from || Math.abs(to) || 1) * 0.08;
  // From zero where that costs at most half of the height.
  return [from >= 0 && from <= to / 2 ? 0 : from - room, to + room];
}

/** What can be kept of a chart. */
export function Keep({ label, plot, table, extras, note }: { note?: string | undefined; label: string; plot: () => uPlot | null; table: () => (string | number | null)[][]; extras?: () => Extras }) {
  const vectors = (): void => {
    const drawn = plot();
    if (drawn) keepSvg(label, drawing(drawn, label, extras?.()));
  };
  return (
    <figcaption class="keep">
      {note && <span class="note-of-axis">{note}</span>}
      <button type="button" class="link" aria-label={`PNG: ${label}`} onClick={() => png(plot(), label)}>
        PNG
      </button>{" "}
      <button type="button" class="link" aria-label={`SVG: ${label}`} onClick={vectors}>
        SVG
      </button>{" "}
      <button type="button" class="link" aria-label={`CSV: ${label}`} onClick={() => keepFile(`${fileName(label)}.csv`, csv(table()))}>
        CSV
      </button>
    </figcaption>
  );
}

/** A chart of lines over a common horizontal axis; drag to zoom, double-click to see everything again. */
export function Chart(props: Props) {
  const box = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | null>(null);
  const [isFromZero, setFromZero] = useState(true);
  const shape = JSON.stringify([props.lines.map((line) => line.label), props.log, props.logX, props.xLabel, props.yLabel, props.names, props.x.length > 60]);
  const data = (): uPlot.AlignedData => [props.x, ...props.lines.map((line) => line.values)] as uPlot.AlignedData;

  useEffect(() => {
    const at = box.current;
    if (!at) return;
    const draw = (): void => {
      plot.current?.destroy();
      plot.current = new uPlot(options(props, at.clientWidth || 320, (isCut) => setFromZero(!isCut)), data(), at);
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

  const table = (): (string | number | null)[][] => [
    [props.xLabel || "place", ...props.lines.map((line) => line.label)],
    ...props.x.map((x, at) => [props.names ? (props.names[x] ?? x) : x, ...props.lines.map((line) => line.values[at] ?? null)]),
  ];
  return (
    <figure class="chart">
      <div style={{ minHeight: `${(props.height ?? 260) + (props.lines.length > 1 ? 50 : 18)}px` }} role="img" aria-label={props.label} ref={box} />
      <Keep label={props.label} plot={() => plot.current} table={table} extras={() => extras(props)} note={isFromZero ? undefined : CUT} />
    </figure>
  );
}

/** What is drawn beside the lines. */
function extras({ x, lines }: Props): Extras {
  const bars = lines.flatMap((line, series) => (line.bars ?? []).flatMap((bar, at) => (bar && x[at] !== undefined ? [{ series, x: x[at]!, from: bar[0], to: bar[1] }] : [])));
  const names = lines.flatMap((line) => (line.names ?? []).flatMap((text, at) => (text && line.values[at] != null ? [{ x: x[at]!, y: line.values[at]!, text }] : [])));
  return { bars, names, steps: lines.flatMap((line, series) => (line.steps ? [series] : [])) };
}
