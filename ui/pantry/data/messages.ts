// The result of the last action, the actions that failed, and the actions one after the other.

import { Cell } from "../../kit/data/cell";
import { textOf } from "../../kit/data/http";

interface Complaint {
  id: number;
  text: string;
  /** When it came, in milliseconds since 1970. */
  at: number;
}

/** The result of the last action that was done; empty if there is none. */
export const result = new Cell("");

/** The actions that failed, the newest first. Each stays until somebody dismisses it. */
export const complaints = new Cell<readonly Complaint[]>([]);

let count = 0;

export const say = (text: string): void => result.set(text);

export function complain(error: unknown): void {
  count += 1;
  complaints.set([{ id: count, text: textOf(error), at: Date.now() }, ...complaints.value]);
}

export function dismiss(id: number): void {
  complaints.set(complaints.value.filter((each) => each.id !== id));
}

let last: Promise<void> = Promise.resolve();

/** Do it when all earlier actions are done. */
export function inOrder(work: () => Promise<void>): void {
  last = last.then(work).catch(complain);
}
