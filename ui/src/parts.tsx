import { cloneElement, type ComponentChildren, type VNode } from "preact";
import { useEffect, useErrorBoundary, useId, useState } from "preact/hooks";
import { get, problemOf, type Problem } from "./api";
import { useConnection } from "./connection";
import { plain } from "./words";

/** What happened, why, and what to try. */
export function Trouble({ problem, again }: { problem: Problem; again?: () => void }) {
  return (
    <div class="trouble" role="alert">
      <p>
        <strong>{plain(problem.what)}</strong>
      </p>
      {problem.cause && <p>Cause: {plain(problem.cause)}</p>}
      {problem.hint && <p>Try: {plain(problem.hint)}</p>}
      {again && (
        <button type="button" onClick={again}>
          Try again
        </button>
      )}
    </div>
  );
}

export type Loaded<T> = { state: "loading" } | { state: "done"; data: T } | { state: "failed"; problem: Problem };

/** What a path of the API answers; `null` asks for nothing yet. */
export function useGet<T>(path: string | null): [Loaded<T>, () => void] {
  const [loaded, setLoaded] = useState<Loaded<T>>({ state: "loading" });
  const [turn, setTurn] = useState(0);
  // What couldn't be read while the server was away is read once it is back.
  const back = useConnection().turn;
  useEffect(() => {
    if (path === null) return;
    const leave = new AbortController();
    get<T>(path, leave.signal).then(
      (data) => setLoaded({ state: "done", data }),
      (error) => leave.signal.aborted || setLoaded({ state: "failed", problem: problemOf(error) }),
    );
    return () => leave.abort();
  }, [path, turn, back]);
  return [loaded, () => setTurn((turn) => turn + 1)];
}

/** The same, asked again now and then for as long as something goes on. */
export function useGetAgain<T>(path: string | null, every_ms: number | null): [Loaded<T>, () => void] {
  const [loaded, again] = useGet<T>(path);
  useEffect(() => {
    if (every_ms === null) return;
    const timer = setInterval(() => document.hidden || again(), every_ms);
    return () => clearInterval(timer);
  }, [path, every_ms]);
  return [loaded, again];
}

/** A choice that is made or not. */
export function Check({ label, value, set }: { label: string; value: boolean; set: (value: boolean) => void }) {
  return (
    <label class="check">
      <input type="checkbox" checked={value} onChange={(event) => set(event.currentTarget.checked)} /> {label}
    </label>
  );
}

/** The three states of something that is fetched. */
export function Fetched<T>(props: { of: Loaded<T>; again: () => void; children: (data: T) => ComponentChildren }) {
  if (props.of.state === "loading") return <p class="quiet">Reading …</p>;
  if (props.of.state === "failed") return <Trouble problem={props.of.problem} again={props.again} />;
  return <>{props.children(props.of.data)}</>;
}

/** Runs something that was asked for, and keeps what went wrong. */
export function useDoing(): [boolean, Problem | null, (what: () => Promise<unknown>) => void] {
  const [busy, setBusy] = useState(false);
  const [problem, setProblem] = useState<Problem | null>(null);
  const run = (what: () => Promise<unknown>): void => {
    setBusy(true);
    setProblem(null);
    what()
      .catch((error) => setProblem(problemOf(error)))
      .finally(() => setBusy(false));
  };
  return [busy, problem, run];
}

/** What is asked again as one types or drags: one request at a time, and always the newest. */
export function useLatest<T>(ask: string, fetcher: (signal: AbortSignal) => Promise<T>, pause = 150): [T | null, Problem | null] {
  const [answer, setAnswer] = useState<T | null>(null);
  const [problem, setProblem] = useState<Problem | null>(null);
  useEffect(() => {
    const leave = new AbortController();
    const timer = setTimeout(() => {
      fetcher(leave.signal).then(
        (answer) => {
          setAnswer(answer);
          setProblem(null);
        },
        (error) => leave.signal.aborted || setProblem(problemOf(error)),
      );
    }, pause);
    return () => {
      clearTimeout(timer);
      leave.abort();
    };
  }, [ask]);
  return [answer, problem];
}

/** A control with its name, and what describes it. */
export function Field(props: { label: string; hint?: string; children: VNode<Record<string, unknown>> }) {
  const id = useId();
  const hint = `${id}-hint`;
  return (
    <div class="field">
      <label class="label" for={id}>
        {props.label}
      </label>
      {cloneElement(props.children, { id, ...(props.hint && { "aria-describedby": hint }) })}
      {props.hint && (
        <span class="hint" id={hint}>
          {props.hint}
        </span>
      )}
    </div>
  );
}

/** A text in a field of its own. */
export function Text(props: { label: string; value: string; set: (text: string) => void; hint?: string; placeholder?: string; size?: "short" | "long" }) {
  return (
    <Field label={props.label} {...(props.hint ? { hint: props.hint } : {})}>
      <input
        class={props.size ?? "short"}
        value={props.value}
        placeholder={props.placeholder ?? ""}
        spellcheck={false}
        autocapitalize="off"
        onInput={(event: { currentTarget: HTMLInputElement }) => props.set(event.currentTarget.value)}
      />
    </Field>
  );
}

/** One of several. */
export function Choice(props: { label: string; value: string; set: (value: string) => void; options: [string, string][]; hint?: string; size?: "short" | "long" }) {
  return (
    <Field label={props.label} {...(props.hint ? { hint: props.hint } : {})}>
      <select class={props.size ?? ""} value={props.value} onChange={(event: { currentTarget: HTMLSelectElement }) => props.set(event.currentTarget.value)}>
        {props.options.map(([value, name]) => (
          <option key={value} value={value}>
            {name}
          </option>
        ))}
      </select>
    </Field>
  );
}

/** A figure with its name. */
export function Figure(props: { name: string; children: ComponentChildren }) {
  return (
    <div class="figure">
      <dt>{props.name}</dt>
      <dd>{props.children}</dd>
    </div>
  );
}

/** A part of a view. What can't be shown in it takes no other part with it. */
export function Section(props: { id: string; title: ComponentChildren; class?: string; children: ComponentChildren }) {
  return (
    <section class={props.class ?? ""} aria-labelledby={props.id}>
      <h2 id={props.id}>{props.title}</h2>
      <Shown>{props.children}</Shown>
    </section>
  );
}

/** What is shown, or that it can't be, and why: an error in it would leave nothing, and say nothing. */
export function Shown({ children }: { children: ComponentChildren }) {
  const [error, again] = useErrorBoundary((error) => console.error(error));
  if (error === undefined) return <>{children}</>;
  return <Trouble problem={{ what: "This can't be shown.", cause: String(error), hint: "the command line, which has the same" }} again={again} />;
}

/** A list of sentences, if there are any. */
export function Sentences({ id, title, of }: { id: string; title: string; of: string[] }) {
  if (of.length === 0) return null;
  return (
    <Section id={id} title={title}>
      <ul>
        {of.map((sentence) => (
          <li key={sentence}>{plain(sentence)}</li>
        ))}
      </ul>
    </Section>
  );
}

/** What scrolls by itself where it is too wide, also by keyboard. */
export function Wide(props: { label: string; children: ComponentChildren }) {
  return (
    <div class="wide" role="region" aria-label={props.label} tabIndex={0}>
      {props.children}
    </div>
  );
}

export interface Column<T> {
  name: string;
  cell: (row: T) => ComponentChildren;
  class?: (row: T) => string;
}

/** A table; the first column names the row. On a phone each row becomes a block. */
export function Table<T>(props: { label: string; rows: T[]; columns: Column<T>[] }) {
  return (
    <Wide label={props.label}>
      <table class="stack">
        <thead>
          <tr>
            {props.columns.map(({ name }) => (
              <th key={name} scope="col">
                {name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {props.rows.map((row, place) => (
            <tr key={place}>
              {props.columns.map(({ name, cell, class: look }, column) =>
                column === 0 ? (
                  <th key={name} scope="row">
                    {cell(row)}
                  </th>
                ) : (
                  <td key={name} data-name={name} class={look?.(row) ?? ""}>
                    {cell(row)}
                  </td>
                ),
              )}
            </tr>
          ))}
        </tbody>
      </table>
    </Wide>
  );
}
