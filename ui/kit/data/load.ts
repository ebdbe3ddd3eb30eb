// The values that a component reads from the service: once, again on request, and never an old answer after a new one.

import { useCallback, useEffect, useRef, useState } from "preact/hooks";

export interface Loaded<T> {
  /** The last value; it stays while it is reloaded. */
  value: T | undefined;
  /** Why the last reading failed. */
  error: unknown;
  loading: boolean;
  reload: () => void;
}

const LATE = 200;

/** Read with `action` at once and whenever one of `inputs` changes. */
export function useLoad<T>(action: (signal: AbortSignal) => Promise<T>, inputs: readonly unknown[]): Loaded<T> {
  const [state, setState] = useState<{ value: T | undefined; error: unknown; loading: boolean }>({
    value: undefined,
    error: null,
    loading: true,
  });
  const [turn, setTurn] = useState(0);
  const known = useRef(inputs);
  useEffect(() => {
    const isOther = known.current.some((input, index) => input !== inputs[index]);
    known.current = inputs;
    const controller = new AbortController();
    setState((before) => ({ value: isOther ? undefined : before.value, error: before.error, loading: true }));
    action(controller.signal).then(
      (value) => controller.signal.aborted || setState({ value, error: null, loading: false }),
      (error) => controller.signal.aborted || setState((before) => ({ value: before.value, error, loading: false })),
    );
    return () => controller.abort();
  }, [...inputs, turn]);
  return { ...state, reload: useCallback(() => setTurn((count) => count + 1), []) };
}

/** Whether something has lasted long enough to be worth a sign that it lasts. */
export function useLate(lasts: boolean): boolean {
  const [late, setLate] = useState(false);
  useEffect(() => {
    setLate(false);
    if (!lasts) return;
    const timer = setTimeout(() => setLate(true), LATE);
    return () => clearTimeout(timer);
  }, [lasts]);
  return late;
}

/** Run `action` at this interval in milliseconds while the page is seen, and when it is seen again. */
export function useEvery(milliseconds: number, action: () => void): void {
  const latest = useRef(action);
  latest.current = action;
  useEffect(() => {
    const run = () => document.hidden || latest.current();
    const timer = setInterval(run, milliseconds);
    document.addEventListener("visibilitychange", run);
    return () => {
      clearInterval(timer);
      document.removeEventListener("visibilitychange", run);
    };
  }, [milliseconds]);
}
