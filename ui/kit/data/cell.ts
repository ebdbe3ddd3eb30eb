// A value that components follow.

import { useEffect, useReducer } from "preact/hooks";

export class Cell<T> {
  readonly #followers = new Set<() => void>();

  /** How often it changed. */
  version = 0;

  constructor(public value: T) {}

  /** Change the value and notify followers; an equal value notifies none. */
  set(value: T): void {
    if (Object.is(value, this.value)) return;
    this.value = value;
    this.tell();
  }

  /** Notify followers of a value that was changed in place. */
  tell(): void {
    this.version += 1;
    for (const follower of [...this.#followers]) follower();
  }

  /** Call `follower` at each change, until what is returned is called. */
  follow(follower: () => void): () => void {
    this.#followers.add(follower);
    return () => this.#followers.delete(follower);
  }
}

/** The value of a cell; the component is drawn again whenever it changes. */
export function useCell<T>(cell: Cell<T>): T {
  const [, again] = useReducer<number, void>((count) => count + 1, 0);
  const drawn = cell.version;
  useEffect(() => {
    const stop = cell.follow(() => again());
    if (drawn !== cell.version) again(); // it changed between drawing and now
    return stop;
  }, [cell]);
  return cell.value;
}
