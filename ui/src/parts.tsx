import { cloneElement, type ComponentChildren, type VNode } from "preact";
import { useEffect, useId, useState } from "preact/hooks";
import { get, problemOf, type Problem } from "./api";

/** What happened, why, and what to try. */
export function Trouble({ problem, again }: { problem: Problem; again?: () => void }) {
  return (
    <div class="trouble" role="alert">
      <p>
        <strong>{problem.what}</strong>
      </p>
      {problem.cause && <p>Cause: {problem.cause}</p>}
      {problem.hint && <p>Try: {problem.hint}</p>}
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
  useEffect(() => {
    if (path === null) return;
    const leave = new AbortController();
    get<T>(path, leave.signal).then(
      (data) => setLoaded({ state: "done", data }),
      (error) => leave.signal.aborted || setLoaded({ state: "failed", problem: problemOf(error) }),
    );
    return () => leave.abort();
  }, [path, turn]);
  return [loaded, () => setTurn((turn) => turn + 1)];
}

/** The three states of something that is fetched. */
export function Fetched<T>(props: { of: Loaded<T>; again: () => void; children: (data: T) => ComponentChildren }) {
  if (props.of.state === "loading") return <p class="quiet">Reading …</p>;
  if (props.of.state === "failed") return <Trouble problem={props.of.problem} again={props.again} />;
  return <>{props.children(props.of.data)}</>;
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

/** A figure with its name. */
export function Figure(props: { name: string; children: ComponentChildren }) {
  return (
    <div class="figure">
      <dt>{props.name}</dt>
      <dd>{props.children}</dd>
    </div>
  );
}

/** A table that scrolls by itself where it is too wide, also by keyboard. */
export function Wide(props: { label: string; children: ComponentChildren }) {
  return (
    <div class="wide" role="region" aria-label={props.label} tabIndex={0}>
      {props.children}
    </div>
  );
}
