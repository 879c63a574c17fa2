import { useState } from "preact/hooks";

/** Gives a file to the browser to keep. */
export function keepFile(name: string, content: Blob): void {
  const url = URL.createObjectURL(content);
  const link = document.createElement("a");
  link.href = url;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}

/** A table as CSV: cells with separators, quotes or line breaks are quoted. */
export function csv(rows: (string | number | null | undefined)[][]): Blob {
  const cell = (of: string | number | null | undefined): string => {
    const text = of === null || of === undefined || (typeof of === "number" && !Number.isFinite(of)) ? "" : String(of);
    return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  return new Blob([rows.map((row) => `${row.map(cell).join(",")}\n`).join("")], { type: "text/csv" });
}

export const json = (of: unknown): Blob => new Blob([`${JSON.stringify(of, null, 1)}\n`], { type: "application/json" });

/** A word of a command line, quoted where a shell needs it. */
export const word = (text: string): string => (/^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`);

/** A command line: `windtunnel` and these words; flags without a value are left out where it is empty. A value that looks like a flag is tied to its own. */
export function command(...words: (string | [string, string | undefined])[]): string {
  const out = words.flatMap((one) => (typeof one === "string" ? [one] : one[1] ? (one[1].startsWith("-") ? [`${one[0]}=${word(one[1])}`] : [one[0], word(one[1])]) : []));
  return ["windtunnel", ...out].join(" ");
}

/** What does the same in a terminal, to be copied. */
export function AsCommand({ text, title = "As a command", open = false }: { text: string; title?: string; open?: boolean }) {
  const [copied, setCopied] = useState(false);
  const copy = (): void => {
    const done = (): void => {
      setCopied(true);
      setTimeout(() => setCopied(false), 2000);
    };
    // Where the clipboard isn't to be had, the command stands there to be marked.
    navigator.clipboard?.writeText(text).then(done, () => {});
  };
  return (
    <details class="as-command" open={open}>
      <summary>{title}</summary>
      <pre class="mono" tabIndex={0} aria-label={title === "As a command" ? "The same as a command" : title}>
        {text}
      </pre>
      <button type="button" onClick={copy}>
        Copy as command
      </button>
      <span role="status" class="quiet">
        {copied && " Copied."}
      </span>
    </details>
  );
}

/** A table that can be kept. */
export function Downloads({ name, rows }: { name: string; rows: (string | number | null | undefined)[][] }) {
  return (
    <button type="button" class="link" onClick={() => keepFile(`${name}.csv`, csv(rows))}>
      Download CSV
    </button>
  );
}
