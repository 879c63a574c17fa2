import { useEffect, useState } from "preact/hooks";

/** Whether the server answers, and how often it came back. */
interface Connection {
  lost: boolean;
  turn: number;
}

let now: Connection = { lost: false, turn: 0 };
let asking = false;
const listeners = new Set<(now: Connection) => void>();

function become(next: Connection): void {
  now = next;
  listeners.forEach((listener) => listener(now));
}

/** The server didn't answer: asks until it does. */
export async function missed(): Promise<void> {
  if (asking) return;
  asking = true;
  while (!(await answers())) {
    if (!now.lost) become({ ...now, lost: true });
    await new Promise((again) => setTimeout(again, 1000));
  }
  asking = false;
  if (now.lost) become({ lost: false, turn: now.turn + 1 });
}

/** Calls whenever the server is back. */
export function onBack(back: () => void): void {
  let { turn } = now;
  listeners.add((now) => {
    if (now.turn !== turn) back();
    turn = now.turn;
  });
}

async function answers(): Promise<boolean> {
  try {
    return (await fetch("/api/v1/health", { cache: "no-store" })).ok;
  } catch {
    return false;
  }
}

/** Whether the server answers; `turn` counts how often it came back, so that what was asked can be asked again. */
export function useConnection(): Connection {
  const [seen, setSeen] = useState(now);
  useEffect(() => {
    setSeen(now);
    listeners.add(setSeen);
    return () => void listeners.delete(setSeen);
  }, []);
  return seen;
}
