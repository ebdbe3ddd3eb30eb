// All tasks that the service knows, newest first: read once, kept up by the events.

import { Cell } from "../../kit/data/cell";
import type { Live } from "../../kit/data/live";
import { sequenceOf } from "../../kit/data/positions";
import { rereading } from "../../kit/data/reread";
import { stream, useEvents } from "./live";
import type { Progress, Status, Task } from "./types";

/** A list has no more: beyond it a filter by the service's own parameters is the way. */
export const MOST = 20_000;

export interface Known {
  task: Task;
  /** The sequence of the log that the task is known from. */
  sequence: number;
  /** When it changed before somebody's eyes, in milliseconds; 0 if it did not. */
  changed: number;
}

export interface TaskList {
  /** Newest first; the array is another one whenever a task came or went. */
  order: readonly string[];
  byId: ReadonlyMap<string, Known>;
  counts: Readonly<Record<Status, number>>;
  /** Whether the service has older tasks, which are neither in the list nor in the counts. */
  isCut: boolean;
  read: boolean;
  error: unknown;
}

const byId = new Map<string, Known>();
const removed = new Map<string, number>();
/** Tasks that leave the list by the user's wish, before the service has confirmed it: whether it has them as seen. */
const leaving = new Map<string, boolean>();
let order: string[] = [];

const noCounts = (): Record<Status, number> => ({ pending: 0, queued: 0, running: 0, completed: 0, failed: 0, expired: 0 });

export const tasks = new Cell<TaskList>({ order, byId, counts: noCounts(), isCut: false, read: false, error: null });

/** Begin to follow. */
export function startTasks(): void {
  stream.listen((events) => apply(events));
  stream.onResync(() => void refresh());
}

/** Read all tasks again. */
export const refresh = rereading<Task>({
  stream,
  path: "/api/tasks?show_seen=true&limit=1000",
  most: MOST,
  idOf: ({ id }) => id,
  forget: () => {
    byId.forEach((known, id) => byId.set(id, { ...known, sequence: 0 }));
    removed.clear();
  },
  put: (task, sequence) => put(task, sequence, 0),
  leave: (found, sequence, isWhole) => {
    for (const [id, known] of byId) if (!found.has(id) && known.sequence <= sequence) byId.delete(id);
    publish({ isCut: !isWhole });
  },
  publish,
});

function put(given: Task, sequence: number, changed: number): void {
  const isLeaving = leaving.has(given.id);
  const task = isLeaving ? { ...given, seen: true } : given;
  const known = byId.get(task.id);
  if ((known && known.sequence >= sequence && changed === 0) || (removed.get(task.id) ?? -1) >= sequence) return;
  if (isLeaving) leaving.set(task.id, given.seen);
  if (task.deleted || task.hidden) {
    byId.delete(task.id);
    removed.set(task.id, sequence);
  } else {
    byId.set(task.id, { task, sequence, changed });
  }
}

function apply(events: readonly Live[]): void {
  const at = Date.now();
  let any = false;
  for (const event of events) {
    if (event.name === "task") {
      any = true;
      put(event.data as Task, sequenceOf(event.id), at);
    } else if (event.name === "stage") {
      const { id, stage, progress } = event.data as { id: string; stage: string; progress?: Progress };
      const known = byId.get(id);
      if (!known) continue;
      any = true;
      const { progress: _, ...task } = known.task;
      byId.set(id, { task: { ...task, stage, ...(progress ? { progress } : {}) }, sequence: sequenceOf(event.id), changed: at });
    }
  }
  if (any) publish({});
}

function publish(change: Partial<TaskList>): void {
  const counts = noCounts();
  let isOther = order.length !== byId.size;
  for (const { task } of byId.values()) if (!task.seen) counts[task.status] += 1;
  if (!isOther) isOther = order.some((id) => !byId.has(id));
  if (isOther) {
    const newest = (a: Known, b: Known) =>
      a.task.created_at < b.task.created_at ? 1 : a.task.created_at > b.task.created_at ? -1 : a.task.id < b.task.id ? 1 : -1;
    order = [...byId.values()].sort(newest).map(({ task }) => task.id);
  }
  tasks.set({ ...tasks.value, ...change, order, counts });
}

/**
 * Take tasks out of the list before the service has done so: `putBack` shows them as the service has them, `settle` leaves it to
 * the service.
 */
export function takeOut(ids: readonly string[]): { putBack: () => void; settle: () => void } {
  const mark = (isSeen: (id: string, known: Task) => boolean) => {
    for (const id of ids) {
      const known = byId.get(id);
      if (known) byId.set(id, { ...known, task: { ...known.task, seen: isSeen(id, known.task) } });
    }
    publish({});
  };
  const settle = () => ids.forEach((id) => leaving.delete(id));
  for (const id of ids) if (!leaving.has(id)) leaving.set(id, byId.get(id)?.task.seen ?? false);
  mark(() => true);
  return {
    settle,
    putBack: () => {
      mark((id, { seen }) => leaving.get(id) ?? seen);
      settle();
    },
  };
}

/** How many events of a task came, in the list or not. */
export const useEventsOf = (id: string): number =>
  useEvents(({ name, data }) => (name === "task" || name === "stage") && (data as { id: string }).id === id, id);
