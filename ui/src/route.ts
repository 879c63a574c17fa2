import { useEffect, useRef, useState } from "preact/hooks";

/** Who wants to know that the address has changed. */
const listeners = new Set<() => void>();
/** What groups of fields haven't yet written into the address, by group. */
const unwritten = new Map<object, () => void>();

const moved = (): void => listeners.forEach((listener) => listener());
addEventListener("popstate", () => {
  // It belongs to the address that was left.
  unwritten.clear();
  moved();
});

/** Writes what waits to be written, so that whoever goes away and comes back finds what they left. */
function flush(): void {
  for (const write of unwritten.values()) write();
  unwritten.clear();
}

/** Goes to an address of the page; Back leads to where one was. */
export function go(to: string, how: "push" | "replace" = "push"): void {
  flush();
  if (to === location.pathname + location.search + location.hash) how = "replace";
  if (how === "push") history.pushState(null, "", to);
  else history.replaceState(null, "", to);
  moved();
}

/** The address, as it is now. */
export function useAddress(): URL {
  const [, turn] = useState(0);
  useEffect(() => {
    const listener = (): void => turn((turn) => turn + 1);
    listeners.add(listener);
    return () => void listeners.delete(listener);
  }, []);
  return new URL(location.href);
}

/** Links within the page need no new page; everything else is the browser's. */
export function follow(event: MouseEvent): void {
  if (event.defaultPrevented || event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
  const link = event.target instanceof Element ? event.target.closest("a") : null;
  if (!link || !link.href || link.target || link.hasAttribute("download")) return;
  const to = new URL(link.href);
  if (to.origin !== location.origin || to.pathname.startsWith("/api/")) return;
  if (to.hash && to.pathname === location.pathname && to.search === location.search) return;
  event.preventDefault();
  go(to.pathname + to.search + to.hash);
  document.getElementById("main")?.focus({ preventScroll: true });
  scrollTo(0, 0);
}

/** What the address says of these fields; what it doesn't say is as at first. */
function read<T extends Record<string, string>>(first: T): T {
  const query = new URLSearchParams(location.search);
  return Object.fromEntries(Object.entries(first).map(([name, usual]) => [name, query.get(name) ?? usual])) as T;
}

/** The query that says so, with whatever else it says. */
export function written<T extends Record<string, string>>(values: T, first: T): string {
  const query = new URLSearchParams(location.search);
  for (const [name, value] of Object.entries(values)) {
    if (value === first[name]) query.delete(name);
    else query.set(name, value);
  }
  const text = query.toString();
  return location.pathname + (text ? `?${text}` : "") + location.hash;
}

/**
 * Fields that the address keeps. What is typed or dragged is written a moment later and leaves no trace for Back; what is chosen
 * with `"push"` does.
 */
export function useQuery<T extends Record<string, string>>(first: T): [T, (change: Partial<T>, how?: "push" | "replace") => void] {
  const [values, setValues] = useState(() => read(first));
  const now = useRef(values);
  now.current = values;
  useEffect(() => {
    const listener = (): void => setValues(read(first));
    listeners.add(listener);
    return () => void listeners.delete(listener);
  }, []);
  const set = (change: Partial<T>, how?: "push" | "replace"): void => {
    const next = { ...now.current, ...change };
    now.current = next;
    setValues(next);
    unwritten.delete(now);
    if (how) {
      // The others' fields come first, so that the new address has them, too.
      flush();
      return go(written(next, first), how);
    }
    const write = (): void => history.replaceState(null, "", written(next, first));
    unwritten.set(now, write);
    setTimeout(() => unwritten.get(now) === write && flush(), 250);
  };
  return [values, set];
}
