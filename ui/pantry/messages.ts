// The result of the last action, and the actions one after the other.

import { Cell } from "../kit/data/cell";
import { textOf } from "../kit/data/http";

export interface Message {
  text: string;
  bad: boolean;
}

/** The result of the last action. */
export const message = new Cell<Message | null>(null);

export function say(text: string): void {
  message.set({ text, bad: false });
}

export function complain(error: unknown): void {
  message.set({ text: textOf(error), bad: true });
}

let last: Promise<void> = Promise.resolve();

/** Do it when all earlier actions are done. */
export function inOrder(work: () => Promise<void>): void {
  last = last.then(work).catch(complain);
}
