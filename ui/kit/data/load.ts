// The values that a component reads from the service: once, again on request, and never an old answer after a new one, or an answer
// to another question.

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

interface State<T> extends Omit<Loaded<T>, "reload"> {
  inputs: readonly unknown[];
}

/** Read with `action` at once and whenever one of `inputs` changes. */
export function useLoad<T>(action: (signal: AbortSignal) => Promise<T>, inputs: readonly unknown[]): Loaded<T> {
  const nothing: State<T> = { inputs, value: undefined, error: null, loading: true };
  const [state, setState] = useState(nothing);
  const [turn, setTurn] = useState(0);
  /** The state, if it is about the present inputs. */
  const present = (known: State<T>): State<T> => (known.inputs.every((input, index) => input === inputs[index]) ? known : nothing);
  useEffect(() => {
    const controller = new AbortController();
    setState((before) => ({ ...present(before), loading: true }));
    action(controller.signal).then(
      (value) => controller.signal.aborted || setState({ inputs, value, error: null, loading: false }),
      (error) => controller.signal.aborted || setState((before) => ({ ...present(before), error, loading: false })),
    );
    return () => controller.abort();
  }, [...inputs, turn]);
  const { value, error, loading } = present(state);
  return { value, error, loading, reload: useCallback(() => setTurn((count) => count + 1), []) };
}

/** Reload whenever the version changes: the former value stays until the new one is there. */
export function useAgain(reload: () => void, version: unknown): void {
  const last = useRef(version);
  useEffect(() => {
    if (last.current !== version) reload();
    last.current = version;
  }, [version]);
}

/** True once loading has taken long enough to show an indicator. */
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
