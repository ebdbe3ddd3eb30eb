// Changes: one after the other, in the order of the taps and scans, and each takes effect once, whatever the network does.

import { Cell } from "../kit/cell";
import { ask, newKey, Problem, textOf, type Answer } from "../kit/http";
import { API } from "./live";

export interface Said {
  text: string;
  bad: boolean;
  /** Makes a change again of which nothing is known; it is the same change. */
  again: (() => void) | null;
}

const PATIENCE = 6_000;
const PAUSE = 400;

/** What came of the last change. */
export const said = new Cell<Said | null>(null);

export function say(text: string): void {
  said.set({ text, bad: false, again: null });
}

export function complain(error: unknown, again: (() => void) | null = null): void {
  said.set({ text: textOf(error), bad: true, again });
}

export type Change<T> = () => Promise<Answer<T>>;

/** A change: each call of what this gives is the same one. It is sent twice where the first answer does not come. */
export function change<T>(path: string, body: unknown = {}): Change<T> {
  const key = newKey();
  const send = () => ask<T>("POST", API + path, { body, key, patience: PATIENCE });
  return async () => {
    try {
      return await send();
    } catch (error) {
      if (!isOpen(error)) throw error;
    }
    await new Promise((done) => setTimeout(done, PAUSE));
    return send();
  };
}

/** Make a change; where it is not known what became of it, it can be tried again. Raises Problem where it is refused. */
export async function perform<T>(make: Change<T>, done: (answer: Answer<T>) => void): Promise<void> {
  let answer: Answer<T>;
  try {
    answer = await make();
  } catch (error) {
    if (!isOpen(error)) throw error;
    return complain(new Error(`Not known whether this was done: ${textOf(error)}`), () => inOrder(() => perform(make, done)));
  }
  done(answer);
}

const isOpen = (error: unknown): boolean => error instanceof Problem && (error.status === 0 || error.status === 503);

let last: Promise<void> = Promise.resolve();

/** Do it when all that was asked for before is done. */
export function inOrder(work: () => Promise<void>): void {
  last = last.then(work).catch((error: unknown) => complain(error));
}
