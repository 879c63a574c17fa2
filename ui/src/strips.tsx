import { useState } from "preact/hooks";

/** One setting's row: its name, what was seen of it, and the figure that counts. */
export interface StripRow {
  label: string;
  text: string;
  /** Whether it is being measured now. */
  running: boolean;
  /** Single values, from 0 at the left to 1 at the right. */
  dots?: { at: number; text: string }[];
  /** Their middle. */
  mark?: number;
  /** Or a bar to here. */
  bar?: number;
}

/** One row for each setting, named beside it: no colour has to be looked up, however many there are. */
export function Strips({ label, rows, ends, rule }: { label: string; rows: StripRow[]; ends?: [string, string]; rule?: number }) {
  const [read, setRead] = useState("");
  return (
    <div class="strips" onPointerLeave={() => setRead("")}>
      <ul aria-label={label}>
        {rows.map((row) => (
          <li key={row.label} class={row.running ? "running" : ""}>
            <span class="strip-name">
              {row.label}
              {row.running && <span class="badge good">running</span>}
            </span>
            <span class="strip" aria-hidden="true">
              {row.bar !== undefined && <i class="strip-bar" style={{ width: `${row.bar * 100}%` }} />}
              {rule !== undefined && <i class="strip-rule" style={{ left: `${rule * 100}%` }} />}
              {row.mark !== undefined && <i class="strip-mark" style={{ left: `${row.mark * 100}%` }} />}
              {row.dots?.map((dot, place) => (
                <i key={place} class="strip-dot" style={{ left: `${dot.at * 100}%` }} onPointerEnter={() => setRead(`${row.label}, trial ${place + 1}: ${dot.text}`)} />
              ))}
            </span>
            <span class="strip-text">{row.text}</span>
          </li>
        ))}
      </ul>
      {ends && (
        <p class="strip-ends" aria-hidden="true">
          <span>{ends[0]}</span>
          <span>{read}</span>
          <span>{ends[1]}</span>
        </p>
      )}
    </div>
  );
}

/** Where evidence is what a claim needs, as a share of a bar's room. */
export const NEEDED = 0.9;
/** How far evidence is on the way to what a claim needs, each factor the same way: a bet that is still 1, or has lost, is none and has no bar. */
export function onLine(have: number, need: number | null): number {
  if (need === null || !(have > 1)) return 0;
  return need > 1 ? Math.min((NEEDED * Math.log(have)) / Math.log(need), 1) : 1;
}
