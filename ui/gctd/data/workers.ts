// The workers, and their use of the machine: asked for now and then while the page is seen, and at each event of a worker.

import { Cell } from "../../kit/data/cell";
import { read } from "../../kit/data/http";
import { stream } from "./live";
import type { Worker } from "./types";

/** How far back the use of cores is kept. */
export const SPAN = 10 * 60_000;
const EVERY = 5_000;
const SOON = 250;

export interface Workers {
  list: readonly Worker[];
  /** Cores used, by worker: time in milliseconds and value. */
  used: ReadonlyMap<string, readonly (readonly [number, number])[]>;
  at: number;
  read: boolean;
  error: unknown;
}

/** The jobs that workers take at a time: scans, and short jobs in addition. A worker that is gone takes none. */
export const slotsOf = (list: readonly Worker[]): number => list.reduce((sum, { concurrency, fast_concurrency }) => sum + (concurrency ?? 0) + (fast_concurrency ?? 0), 0);

const used = new Map<string, [number, number][]>();
let asking = false;
let soon = 0;

export const workers = new Cell<Workers>({ list: [], used, at: Date.now(), read: false, error: null });

export function startWorkers(): void {
  stream.onResync(() => void readWorkers());
  stream.listen((events) => {
    if (!events.some(({ name }) => name === "worker" || name === "task")) return;
    soon ||= window.setTimeout(() => {
      soon = 0;
      void readWorkers();
    }, SOON);
  });
  setInterval(() => document.hidden || void readWorkers(), EVERY);
}

export async function readWorkers(): Promise<void> {
  if (asking) return;
  asking = true;
  try {
    const list = await read<Worker[]>("/api/workers");
    const at = Date.now();
    for (const worker of list) {
      const points = used.get(worker.id) ?? [];
      if (worker.cpu !== null) points.push([at, worker.cpu]);
      used.set(worker.id, points.filter(([then]) => then > at - SPAN));
    }
    workers.set({ list, used, at, read: true, error: null });
  } catch (error) {
    workers.set({ ...workers.value, error });
  } finally {
    asking = false;
  }
}
