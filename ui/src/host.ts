/** Who wants to know that this host's settings were changed, or put back. */
const listeners = new Set<() => void>();

export const changed = (): void => listeners.forEach((listener) => listener());

export function onChanged(listener: () => void): () => void {
  listeners.add(listener);
  return () => void listeners.delete(listener);
}
