/** Three significant digits, as the terminal's reports have them. */
function three(value: number): string {
  const size = Math.abs(value);
  return value.toFixed(size >= 100 ? 0 : size >= 10 ? 1 : 2);
}

/** A rate in the unit that fits. */
export function rate(bps: number | null | undefined): string {
  if (bps === null || bps === undefined) return "–";
  if (bps >= 1e9) return `${three(bps / 1e9)} Gbit/s`;
  if (bps >= 1e6) return `${three(bps / 1e6)} Mbit/s`;
  return `${three(bps / 1e3)} kbit/s`;
}

/** The figure by which a trial is known: what it is called, and in which unit it comes. */
export interface Measured {
  name: string;
  unit: string;
  better: string;
}

export const GOODPUT: Measured = { name: "goodput", unit: "bit/s", better: "larger" };

/** Such a figure. */
export function figure(of: Measured, value: number | null | undefined): string {
  if (value === null || value === undefined) return "–";
  if (of.unit === "bit/s") return rate(value);
  if (of.unit === "s") return value < 1 ? `${three(value * 1e3)} ms` : `${three(value)} s`;
  return `${three(value)} ${of.unit}`;
}

/** In which unit an axis has rates of up to `most` bit/s, and what is one there. */
export const scale = (most: number): Scale => (most > 0 && most < 1e6 ? { unit: "kbit/s", one: 1e3 } : { unit: "Mbit/s", one: 1e6 });
export interface Scale {
  unit: string;
  one: number;
}
/** Such a figure on an axis, and what the axis is called. */
export const onAxis = (of: Measured, value: number, { one }: Scale = scale(0)): number => (of.unit === "bit/s" ? value / one : value);
export const axis = (of: Measured, { unit }: Scale = scale(0)): string => `${title(of)}, ${of.unit === "bit/s" ? unit : of.unit}`;
export const title = (of: Measured): string => of.name.charAt(0).toUpperCase() + of.name.slice(1);

/** Mbit/s on an axis. */
export const mbit = (value: number): string => value.toFixed(value < 10 ? 2 : 1);
export const ms = (us: number): string => `${three(us / 1e3)} ms`;
/** Bytes in the unit that fits. */
export function size(bytes: number): string {
  if (bytes >= 2 ** 20) return `${three(bytes / 2 ** 20)} MiB`;
  return bytes >= 1024 ? `${three(bytes / 1024)} KiB` : `${Math.round(bytes)} bytes`;
}
export const percent = (ratio: number | null | undefined): string =>
  ratio === null || ratio === undefined ? "–" : `${(ratio * 100).toFixed(2)} %`;
export const times = (ratio: number | null | undefined): string =>
  ratio === null || ratio === undefined ? "–" : `×${ratio.toFixed(2)}`;
/** With which confidence intervals hold whose risk is `alpha`: `95 %`; a half goes to the even number, as in the command line's reports. */
export function confidence(alpha: number): string {
  const share = (1 - alpha) * 100;
  const whole = Math.floor(share);
  return `${share - whole === 0.5 ? whole + (whole % 2) : Math.round(share)} %`;
}
/** An interval of ratios, rounded outwards: it holds as it is told. */
export const outwards = (low: number, high: number): string => `${times(Math.floor(low * 100 + 1e-9) / 100)} to ${times(Math.ceil(high * 100 - 1e-9) / 100)}`;
export const count = (value: number): string => value.toLocaleString("en-GB").replaceAll(",", "\u202f");
export const evidence = (value: number | null | undefined): string =>
  value === null || value === undefined ? "–" : value < 0.1 ? "< 0.1 : 1" : `${value >= 1e6 ? value.toExponential(1) : value < 3 ? value.toFixed(1) : count(Math.floor(value))} : 1`;

export function duration(seconds: number): string {
  if (seconds < 90) return `${Math.round(seconds)} s`;
  const minutes = Math.round(seconds / 60);
  return minutes < 90 ? `${minutes} min` : `${(minutes / 60).toFixed(1)} h`;
}

/** Made once: it takes far longer than to write a time. */
const LOCAL = new Intl.DateTimeFormat("sv-SE", { dateStyle: "short", timeStyle: "short" });

/** How long ago or for how long, in one figure. */
export function span(seconds: number): string {
  const [size, unit] = ([[86400, "d"], [3600, "h"], [60, "min"]] as const).find(([size]) => seconds >= 2 * size) ?? [1, "s"];
  return `${Math.round(Math.max(0, seconds) / size)} ${unit}`;
}

/** A ratio as the change that it is: `+12 %`, `−3.4 %`, `×2.4`. */
export function change(ratio: number | null | undefined): string {
  if (ratio === null || ratio === undefined) return "–";
  if (ratio >= 2) return `×${ratio.toFixed(1)}`;
  const percent = Math.abs(ratio - 1) * 100;
  return `${ratio < 1 ? "−" : "+"}${percent >= 9.95 ? percent.toFixed(0) : percent.toFixed(1)} %`;
}

/** Whether it is a time that calendars have. */
const isTime = (unixUs: number): boolean => !Number.isNaN(new Date(unixUs / 1e3).getTime());
/** When, in the reader's own time zone; "?" of what can't be a time. */
export const when = (unixUs: number): string => (isTime(unixUs) ? LOCAL.format(unixUs / 1e3) : "?");
/** When, in UTC, for files; empty of what can't be a time. */
export const iso = (unixUs: number): string => (isTime(unixUs) ? new Date(unixUs / 1e3).toISOString() : "");

/** A setting's value. */
export function value(of: unknown): string {
  if (of === null || of === undefined) return "–";
  if (Array.isArray(of)) return of.map(value).join(" ");
  if (typeof of === "boolean") return of ? "on" : "off";
  return String(of);
}

/** Settings in one line. */
export const settings = (of: Record<string, unknown>): string =>
  Object.entries(of)
    .map(([key, level]) => `${key}=${value(level)}`)
    .join(" ");
