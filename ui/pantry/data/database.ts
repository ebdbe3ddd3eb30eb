// The database of this browser: changes that wait, and the products as they were last known.
//
// Writes are strict: they are on the disk when they are done. If the browser stores nothing (a private window, a full disk), the
// page works without it, and shows that.

import { openDB, type IDBPDatabase } from "idb";
import { Cell } from "../../kit/data/cell";

export type Store = "changes" | "known";

/** The position of kept values, before any position of a log: each answer of the service replaces them. */
export const KEPT_HERE = "0";

/** Whether what is stored outlasts this page. */
export const isDurable = new Cell(true);

let opened: Promise<IDBPDatabase | null> | null = null;

function database(): Promise<IDBPDatabase | null> {
  opened ??= openDB("pantry", 2, {
    upgrade: (made) => {
      if (!made.objectStoreNames.contains("changes")) made.createObjectStore("changes", { keyPath: "id" });
      if (!made.objectStoreNames.contains("known")) made.createObjectStore("known", { keyPath: "id" });
    },
    blocking: (_now, _wanted, event) => (event.target as IDBDatabase).close(), // a newer page needs it
  }).catch(failed);
  return opened;
}

function failed(): null {
  isDurable.set(false);
  opened = Promise.resolve(null);
  return null;
}

/** All that a store has, by its key; nothing if the browser stores nothing. */
export async function stored<T>(store: Store): Promise<T[]> {
  const found = await database();
  return found ? ((await found.getAll(store).catch(failed)) ?? []) : [];
}

/** Change a store, and return when it is on the disk, or when it is known that the browser stores nothing. */
export async function write(store: Store, change: { put: object } | { remove: number }): Promise<void> {
  const found = await database();
  if (!found) return;
  try {
    const transaction = found.transaction(store, "readwrite", { durability: "strict" });
    await ("put" in change ? transaction.store.put(change.put) : transaction.store.delete(change.remove));
    await transaction.done;
  } catch {
    failed();
  }
}
