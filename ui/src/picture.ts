import type uPlot from "uplot";
import { keepFile } from "./keep";

export const css = (name: string): string => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

export const fileName = (label: string): string => label.toLowerCase().replace(/[^a-z0-9]+/g, "-").replace(/^-|-$/g, "").slice(0, 60) || "chart";

/** A chart as it is seen, as a file, on the page's own background. */
export function png(plot: uPlot | null, label: string): void {
  const drawn = plot?.root.querySelector("canvas");
  if (!drawn) return;
  const canvas = document.createElement("canvas");
  const [scale, head] = [devicePixelRatio, 28 * devicePixelRatio];
  [canvas.width, canvas.height] = [drawn.width, drawn.height + head];
  const ink = canvas.getContext("2d");
  if (!ink) return;
  ink.fillStyle = css("--surface");
  ink.fillRect(0, 0, canvas.width, canvas.height);
  ink.fillStyle = css("--text");
  ink.font = `${13 * scale}px system-ui, sans-serif`;
  ink.fillText(label, 8 * scale, 19 * scale, canvas.width - 16 * scale);
  ink.drawImage(drawn, 0, head);
  canvas.toBlob((blob) => blob && keepFile(`${fileName(label)}.png`, blob));
}

export const escape = (text: string): string => text.replace(/[&<>"]/g, (sign) => `&#${sign.charCodeAt(0)};`);
const at = (place: number): string => place.toFixed(1);

/** What is drawn beside the lines: intervals and names at points, in the values of the axes. */
export interface Extras {
  bars?: { series: number; x: number; from: number; to: number }[];
  names?: { x: number; y: number; text: string }[];
  /** Which lines hold a value until the next one. */
  steps?: number[];
}

/** What uPlot has laid out of an axis; its types leave it out. */
type Laid = uPlot.Axis & { _splits?: (number | null)[]; _values?: (string | null)[] };

/** A point with a name, and how wide the name is written. */
interface NamedPoint {
  x: number;
  y: number;
  text: string;
  width: number;
}

/** Where a name is written: the end of its base line that is next to the point. */
interface PlacedName {
  x: number;
  y: number;
  anchor: "start" | "end";
  text: string;
}

/** So high is a name, and so far apart are the places that are tried for it. */
const NAME_HEIGHT = 13;

/**
 * Names beside their points: to the right and above, or where that would run out of the picture or over a point or another name, on the
 * other side, below, or further away; `one` is the length of a pixel.
 */
export function beside(points: NamedPoint[], box: { left: number; top: number; width: number; height: number }, one: number): PlacedName[] {
  const around = points.map(({ x, y }) => [x - 4 * one, y - 4 * one, x + 4 * one, y + 4 * one] as const);
  const taken: (readonly [number, number, number, number])[] = [];
  return points.map(({ x, y, text, width }, own) => {
    const others = around.filter((_, place) => place !== own);
    // Next to the point first, then line by line further up and down.
    const heights = [0, 1, 2, 3, 4, 5].flatMap((row) => [-7 - row * NAME_HEIGHT, 16 + row * NAME_HEIGHT]);
    const places = heights.flatMap((height) => ([1, -1] as const).map((side) => ({ side, x: x + 7 * one * side, y: y + height * one })));
    const boxOf = ({ side, x, y }: (typeof places)[number]) => [side > 0 ? x : x - width, y - 10 * one, side > 0 ? x + width : x, y + 3 * one] as const;
    const inside = (place: (typeof places)[number]): boolean => {
      const [left, top, right, bottom] = boxOf(place);
      return left >= box.left - 24 * one && right <= box.left + box.width + 24 * one && top >= box.top - 12 * one && bottom <= box.top + box.height;
    };
    const free = (place: (typeof places)[number]): boolean => {
      const [left, top, right, bottom] = boxOf(place);
      return ![...others, ...taken].some((other) => left < other[2] && right > other[0] && top < other[3] && bottom > other[1]);
    };
    const fits = places.filter(inside);
    const place = fits.find(free) ?? fits[0] ?? places[0]!;
    taken.push(boxOf(place));
    return { x: place.x, y: place.y, anchor: place.side > 0 ? "start" : "end", text };
  });
}

/** A chart as it is seen, in vectors: the same axes, lines, points and colours, and a legend. */
export function drawing(plot: uPlot, label: string, extras: Extras = {}): string {
  const ratio = devicePixelRatio || 1;
  const box = { left: plot.bbox.left / ratio, top: plot.bbox.top / ratio, width: plot.bbox.width / ratio, height: plot.bbox.height / ratio };
  const head = 28;
  const named = plot.series.map((series, place) => ({ series, place })).slice(1);
  const legend = named.length > 1 ? named : [];
  const [width, height] = [plot.width, plot.height + head + (legend.length > 0 ? 18 * legend.length + 8 : 0)];
  const x = (value: number): number => box.left + plot.valToPos(value, "x");
  const y = (value: number): number => head + box.top + plot.valToPos(value, "y");
  const [ink, quiet, grid] = [css("--text"), css("--text-2"), css("--grid")];
  const out: string[] = [];
  const line = (x1: number, y1: number, x2: number, y2: number, stroke: string, wide: number, dash = ""): string => `<line x1="${at(x1)}" y1="${at(y1)}" x2="${at(x2)}" y2="${at(y2)}" stroke="${stroke}" stroke-width="${wide}"${dash}/>`;
  const text = (left: number, top: number, anchor: string, words: string, fill = quiet, more = ""): string => `<text x="${at(left)}" y="${at(top)}" text-anchor="${anchor}" fill="${fill}"${more}>${escape(words)}</text>`;
  const [across, up] = plot.axes as [Laid, Laid];
  const bottom = head + box.top + box.height;
  across._splits?.forEach((split, place) => {
    if (split === null) return;
    out.push(line(x(split), head + box.top, x(split), bottom, grid, 1), text(x(split), bottom + 18, "middle", across._values?.[place] ?? ""));
  });
  up._splits?.forEach((split, place) => {
    if (split === null) return;
    out.push(line(box.left, y(split), box.left + box.width, y(split), grid, 1), text(box.left - 8, y(split) + 4, "end", up._values?.[place] ?? ""));
  });
  const title = (axis: Laid): string => (typeof axis.label === "string" ? axis.label : "");
  const cut = plot.scales.y?.distr !== 3 && (plot.scales.y?.min ?? 0) > 0;
  out.push(text(box.left + box.width / 2, bottom + 42, "middle", title(across)));
  if (cut) out.push(text(box.left + box.width, bottom + 42, "end", "The vertical axis doesn't begin at 0.", quiet));
  const middle = head + box.top + box.height / 2;
  out.push(text(14, middle, "middle", title(up), quiet, ` transform="rotate(-90 14 ${at(middle)})"`));
  const stroke = ({ series, place }: (typeof named)[number]): string => {
    const of = series.stroke as unknown;
    return String(typeof of === "function" ? (of as (plot: uPlot, place: number) => unknown)(plot, place) : of);
  };
  const inside: string[] = [];
  for (const one of named) {
    const { series, place } = one;
    const values = plot.data[place] ?? [];
    const dots = series.points?.show as unknown;
    const dotted = typeof dots === "function" ? Boolean((dots as (plot: uPlot, place: number) => unknown)(plot, place)) : dots === true;
    const colour = stroke(one);
    if ((series.width ?? 0) > 0) {
      const parts: string[] = [];
      let pen = "M";
      plot.data[0].forEach((here, index) => {
        const value = values[index];
        if (value === null || value === undefined || !Number.isFinite(value)) {
          if (!series.spanGaps) pen = "M";
          return;
        }
        parts.push(pen === "L" && extras.steps?.includes(place - 1) ? `H${at(x(here))}V${at(y(value))}` : `${pen}${at(x(here))} ${at(y(value))}`);
        pen = "L";
      });
      const dash = series.dash?.length ? ` stroke-dasharray="${series.dash.join(" ")}"` : "";
      if (parts.length > 1) inside.push(`<path d="${parts.join("")}" fill="none" stroke="${colour}" stroke-width="${series.width ?? 1}"${dash}/>`);
    }
    if (dotted) {
      const radius = (series.points?.size ?? 5) / 2;
      plot.data[0].forEach((here, index) => {
        const value = values[index];
        if (value !== null && value !== undefined && Number.isFinite(value)) inside.push(`<circle cx="${at(x(here))}" cy="${at(y(value))}" r="${radius}" fill="${colour}"/>`);
      });
    }
  }
  for (const bar of extras.bars ?? []) inside.push(line(x(bar.x), y(bar.from), x(bar.x), y(bar.to), stroke({ series: plot.series[bar.series + 1]!, place: bar.series + 1 }), 2));
  const points = (extras.names ?? []).map((name) => ({ x: x(name.x), y: y(name.y), text: name.text, width: 7 * name.text.length }));
  const names = beside(points, { ...box, top: head + box.top }, 1).map((name) => text(name.x, name.y, name.anchor, name.text, ink));
  out.push(`<svg x="0" y="0" width="${width}" height="${height}"><g clip-path="url(#plot)">${inside.join("")}</g></svg>`, ...names);
  legend.forEach((one, row) => {
    const top = head + plot.height + 14 + 18 * row;
    out.push(`<rect x="${at(box.left)}" y="${top - 8}" width="12" height="8" fill="${stroke(one)}"/>`, text(box.left + 18, top, "start", String(one.series.label ?? "")));
  });
  return svg(width, height, label, [`<clipPath id="plot"><rect x="${at(box.left - 5)}" y="${at(head + box.top - 8)}" width="${at(box.width + 10)}" height="${at(box.height + 16)}"/></clipPath>`, ...out]);
}

/** A file of that size with a title. */
export function svg(width: number, height: number, label: string, parts: string[]): string {
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}" font-family="system-ui, sans-serif" font-size="12" role="img" aria-label="${escape(label)}">`,
    `<title>${escape(label)}</title><rect width="${width}" height="${height}" fill="${css("--surface")}"/>`,
    `<text x="8" y="19" font-size="13" fill="${css("--text")}">${escape(label)}</text>`,
    ...parts,
    "</svg>\n",
  ].join("\n");
}

export const keepSvg = (label: string, drawn: string): void => keepFile(`${fileName(label)}.svg`, new Blob([drawn], { type: "image/svg+xml" }));
