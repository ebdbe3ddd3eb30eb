// Changes wait here until the service has answered: in order, each with its key, in the browser's database.
//
// The key makes it safe to send a change again after a lost answer, a closed page or a killed browser: it takes effect once.

import { openDB, type IDBPDatabase } from "idb";
import { Cell } from "../kit/data/cell";
import { ask, newKey, Problem, signedOut, textOf, type Answer } from "../kit/data/http";
import { API, stream } from "./live";

export interface Change {
  id: number;
  key: string;
  path: string;
  body: unknown;
  /** The change in words: "Flour: 1 kg out". */
  text: string;
  /** When it was made, in milliseconds since 1970. */
  at: number;
  /** It was sent at least once, so it may have taken effect. */
  sent: boolean;
  /** Why the service refused it; null before an answer. */
  refusal: string | null;
}

export interface Queue {
  waiting: readonly Change[];
  refused: readonly Change[];
  /** Why the first waiting change could not be sent; null while it is under way. */
  problem: string | null;
  /** Whether the changes outlast this page. */
  isDurable: boolean;
}

type Settle = (change: Change, answer: Answer<unknown> | Problem) => void;

const STORE = "changes";
const PATIENCE = 6_000;
const FIRST_PAUSE = 1_000;
const LONGEST_PAUSE = 30_000;

export const queue = new Cell<Queue>({ waiting: [], refused: [], problem: null, isDurable: true });

let changes: Change[] = [];
let database: Promise<IDBPDatabase | null> = Promise.resolve(null);
let settle: Settle = () => {};
let next = 1;
let pause = FIRST_PAUSE;
let timer = 0;
let isSending = false;

/** Take up the changes of earlier pages, and call `settled` with each answer from now on. */
export async function startQueue(settled: Settle): Promise<void> {
  settle = settled;
  database = opened();
  const kept: Change[] = (await (await database)?.getAll(STORE)) ?? [];
  changes = [...kept, ...changes];
  next = Math.max(next, ...kept.map(({ id }) => id + 1));
  publish();
  addEventListener("online", sendNow);
  signedOut.follow(sendNow);
  stream.state.follow(() => stream.state.value.kind === "live" && sendNow());
  sendNow();
}

/** Keep a change, and send it when all before it are settled. It returns when the change is kept. */
export async function put(path: string, body: unknown, text: string): Promise<void> {
  await database;
  const change: Change = { id: Math.max(next, Date.now()), key: newKey(), path, body, text, at: Date.now(), sent: false, refusal: null };
  next = change.id + 1;
  await keep(change); // before it is shown: a change that a user has seen outlasts a killed browser
  changes = [...changes, change];
  publish();
  void send();
}

/** Remove a change that was not sent, or the note of one that was refused. */
export async function drop(change: Change): Promise<void> {
  if (change.sent && change.refusal === null) return;
  await forget(change);
}

function sendNow(): void {
  pause = FIRST_PAUSE;
  void send();
}

async function send(): Promise<void> {
  if (isSending || signedOut.value) return;
  isSending = true;
  clearTimeout(timer);
  try {
    for (let first = firstWaiting(); first; first = firstWaiting()) {
      const answer = await answerTo(first);
      if (answer instanceof Problem && isOpen(answer)) return later(answer);
      pause = FIRST_PAUSE;
      if (answer instanceof Problem) await replace(first, { refusal: answer.message });
      else await forget(first);
      publish(null);
      settle(first, answer);
    }
  } finally {
    isSending = false;
  }
}

const firstWaiting = (): Change | undefined => changes.find(({ refusal }) => refusal === null);

async function answerTo(change: Change): Promise<Answer<unknown> | Problem> {
  if (!change.sent) await replace(change, { sent: true });
  try {
    return await ask<unknown>("POST", API + change.path, { body: change.body, key: change.key, patience: PATIENCE });
  } catch (error) {
    return error instanceof Problem ? error : new Problem(0, textOf(error));
  }
}

/** Whether the outcome of a request is not known, or the request can succeed later as it is. */
const isOpen = ({ status }: Problem): boolean => status === 0 || status === 401 || status === 408 || status === 429 || status >= 500;

function later(problem: Problem): void {
  publish(problem.message);
  timer = window.setTimeout(() => void send(), pause);
  pause = Math.min(2 * pause, LONGEST_PAUSE);
}

async function replace(change: Change, part: Partial<Change>): Promise<void> {
  Object.assign(change, part);
  publish();
  await keep(change);
}

async function forget(change: Change): Promise<void> {
  changes = changes.filter(({ id }) => id !== change.id);
  publish();
  await written((kept) => kept.delete(STORE, change.id));
}

const keep = (change: Change): Promise<void> => written((kept) => kept.put(STORE, change));

async function written(write: (kept: IDBPDatabase) => Promise<unknown>): Promise<void> {
  const kept = await database;
  try {
    if (kept) await write(kept);
  } catch {
    database = Promise.resolve(null); // perhaps the disk is full: the changes are in memory only, and the page shows that
    queue.set({ ...queue.value, isDurable: false });
  }
}

async function opened(): Promise<IDBPDatabase | null> {
  try {
    return await openDB("pantry", 1, { upgrade: (made) => void made.createObjectStore(STORE, { keyPath: "id" }) });
  } catch {
    queue.set({ ...queue.value, isDurable: false });
    return null;
  }
}

function publish(problem: string | null = queue.value.problem): void {
  const waiting = changes.filter(({ refusal }) => refusal === null);
  const refused = changes.filter(({ refusal }) => refusal !== null);
  queue.set({ ...queue.value, waiting, refused, problem: waiting.length ? problem : null });
}
