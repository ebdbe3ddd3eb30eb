// Rows that do not move while the pointer or the focus is at them: new ones are counted, and shown on request.

import { useRef, useState } from "preact/hooks";

interface Held<T> {
  shown: readonly T[];
  /** How many rows are new, or in another place, since the rows are held. */
  waiting: number;
  release: () => void;
}

/** `rows` as they are, or, while `hold` is, the rows that were there when it began, with their present content. */
export function useHeld<T>(rows: readonly T[], keyOf: (row: T) => string, current: (key: string) => T | undefined, hold: boolean, scope: string): Held<T> {
  const kept = useRef<{ keys: readonly string[]; scope: string } | null>(null);
  const [, again] = useState(0);
  if (!hold || kept.current?.scope !== scope) kept.current = null;
  if (hold && !kept.current) kept.current = { keys: rows.map(keyOf), scope };
  const release = () => {
    kept.current = null;
    again((count) => count + 1);
  };
  if (!kept.current) return { shown: rows, waiting: 0, release };
  const { keys } = kept.current;
  const known = new Set(keys);
  const shown = keys.map(current).filter((row): row is T => row !== undefined);
  return { shown, waiting: rows.reduce((count, row) => count + (known.has(keyOf(row)) ? 0 : 1), 0), release };
}
