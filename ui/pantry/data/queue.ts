// Changes wait here until the service has answered: each with its key, in the browser's database.
//
// The key makes it safe to send a change again after a lost answer, a closed page or a killed browser: it takes effect once.
// Changes of one product are sent in their order. Several tabs share the database: the tab that has the lock sends.

import { Cell } from "../../kit/data/cell";
import { ask, newKey, Problem, signedOut, textOf, type Answer } from "../../kit/data/http";
import { isDurable, stored, write } from "./database";
import { API, stream } from "./live";

export interface Change {
  id: number;
  key: string;
  path: string;
  body: unknown;
  /** The code of the product that it changes. */
  ean13: string;
  /** The change in words: "Flour: 1 kg out". */
  text: string;
  /** When it was made, in milliseconds since 1970. */
  at: number;
  /** It was sent at least once, so it may have taken effect. */
  sent: boolean;
  /** Why the service refused it; null before an answer. */
  refusal: string | null;
}

interface Queue {
  waiting: readonly Change[];
  refused: readonly Change[];
  /** Why the first waiting change could not be sent; null while it is under way. */
  problem: string | null;
}

type Settle = (change: Change, answer: Answer<unknown> | Problem) => void;

const NAME = `pantry-queue ${location.pathname}`;
const PATIENCE = 6_000;
const FIRST_PAUSE = 1_000;
const LONGEST_PAUSE = 30_000;

export const queue = new Cell<Queue>({ waiting: [], refused: [], problem: null });

const others = new BroadcastChannel(NAME);
let changes: Change[] = [];
let taken: Promise<void> = Promise.resolve();
let settle: Settle = () => {};
let next = 1;
let pause = FIRST_PAUSE;
let timer = 0;
let isSending = false;
let isAsked = false;

/** Take up the changes of earlier pages, and call `settled` with each answer from now on. */
export async function startQueue(settled: Settle): Promise<void> {
  settle = settled;
  taken = reread();
  await taken;
  others.addEventListener("message", () => void reread().then(send));
  addEventListener("online", sendNow);
  document.addEventListener("visibilitychange", sendNow);
  signedOut.follow(sendNow);
  stream.state.follow(() => stream.state.value.kind === "live" && sendNow());
  sendNow();
}

/** Keep a change, and send it when all before it of its product are settled. Return it when it is kept. */
export async function put(ean13: string, path: string, body: unknown, text: string): Promise<Change> {
  await taken;
  const change: Change = { id: Math.max(next, Date.now()), key: newKey(), path, body, ean13, text, at: Date.now(), sent: false, refusal: null };
  next = change.id + 1;
  await write("changes", { put: change }); // before it is shown: a change that a user has seen outlasts a killed browser
  if (!changes.some(({ id }) => id === change.id)) changes = [...changes, change];
  publish();
  others.postMessage("changed");
  void navigator.storage?.persist?.().catch(() => {}); // otherwise a full disk may remove what waits
  void send();
  return changes.find(({ id }) => id === change.id) ?? change; // the one that is kept up to date
}

/** Whether the service has accepted a change that was put on this page. */
export const isDone = (change: Change): boolean => change.sent && change.refusal === null && !changes.some(({ id }) => id === change.id);

/** Remove a change that was not sent, or the note of one that was refused. */
export async function drop(change: Change): Promise<void> {
  if (change.sent && change.refusal === null) return;
  await forget(change);
}

/** Send a refused change again, perhaps another one: a refused one had no effect. It is sent once, also at a double click. */
export async function again(refused: Change, path = refused.path, body = refused.body, text = refused.text): Promise<void> {
  if (!changes.some(({ id }) => id === refused.id)) return;
  changes = changes.filter(({ id }) => id !== refused.id);
  publish();
  await put(refused.ean13, path, body, text); // before the refusal leaves the disk: a killed browser loses nothing
  await forget(refused);
}

function sendNow(): void {
  pause = FIRST_PAUSE;
  void send();
}

async function send(): Promise<void> {
  isAsked = true;
  if (isSending || signedOut.value) return;
  isSending = true;
  clearTimeout(timer);
  try {
    while (isAsked) {
      isAsked = false;
      await alone(sendAll);
    }
  } finally {
    isSending = false;
  }
}

/** Do it unless another tab does. A browser without locks may do it twice, and the keys make that harmless. */
async function alone(work: () => Promise<void>): Promise<void> {
  if (!navigator.locks) return work();
  await navigator.locks.request(NAME, { ifAvailable: true }, (lock) => (lock ? work() : undefined));
}

/** Send what waits, in order. A change whose outcome is open keeps the changes of its product waiting; a lost network keeps all. */
async function sendAll(): Promise<void> {
  const held = new Set<string>();
  let problem: Problem | null = null;
  for (let change = firstWaiting(held); change; change = firstWaiting(held)) {
    const answer = await answerTo(change);
    if (answer instanceof Problem && isOpen(answer)) {
      problem = answer;
      if (answer.status < 500) break;
      held.add(change.ean13);
      continue;
    }
    pause = FIRST_PAUSE;
    if (answer instanceof Problem) await replace(change, { refusal: answer.message });
    else await forget(change);
    settle(change, answer);
  }
  publish(problem?.message ?? null);
  if (problem) later();
}

const firstWaiting = (held: ReadonlySet<string>): Change | undefined =>
  changes.find(({ refusal, ean13 }) => refusal === null && !held.has(ean13));

async function answerTo(change: Change): Promise<Answer<unknown> | Problem> {
  if (!change.sent) await replace(change, { sent: true });
  try {
    return await ask<unknown>("POST", API + change.path, { body: change.body, key: change.key, patience: PATIENCE });
  } catch (error) {
    return error instanceof Problem ? error : new Problem(0, textOf(error));
  }
}

/** Whether the outcome of a request is not known, or the request can succeed later as it is. */
export const isOpen = ({ status }: Problem): boolean => [0, 401, 408, 425, 429].includes(status) || status >= 500;

function later(): void {
  clearTimeout(timer);
  timer = window.setTimeout(() => void send(), pause);
  pause = Math.min(2 * pause, LONGEST_PAUSE);
}

async function replace(change: Change, part: Partial<Change>): Promise<void> {
  const changed = { ...change, ...part };
  Object.assign(change, part);
  publish();
  await write("changes", { put: changed });
  others.postMessage("changed");
}

async function forget(change: Change): Promise<void> {
  changes = changes.filter(({ id }) => id !== change.id);
  publish();
  await write("changes", { remove: change.id });
  others.postMessage("changed");
}

/** Take up what the database has: another tab may have added, sent or dropped changes. */
async function reread(): Promise<void> {
  const kept = await stored<Change>("changes");
  if (!isDurable.value) return;
  const here = new Map(changes.map((change) => [change.id, change]));
  changes = kept.map((change) => Object.assign(here.get(change.id) ?? change, change));
  next = Math.max(next, ...kept.map(({ id }) => id + 1));
  publish();
}

function publish(problem: string | null = queue.value.problem): void {
  const waiting = changes.filter(({ refusal }) => refusal === null);
  const refused = changes.filter(({ refusal }) => refusal !== null).reverse();
  queue.set({ waiting, refused, problem: waiting.length ? problem : null });
}
