// The repositories and the latest analysis of each project: read when a screen wants them, kept up by the events.

import { useEffect } from "preact/hooks";
import { Cell, useCell } from "../../kit/data/cell";
import { readPages } from "../../kit/data/http";
import { stream, useEvents } from "./live";
import type { Analysis, Repo, Task } from "./types";

interface Repos {
  repos: readonly Repo[];
  analyses: readonly Analysis[];
  read: boolean;
  error: unknown;
}

const SOON = 300;

export const repos = new Cell<Repos>({ repos: [], analyses: [], read: false, error: null });

let users = 0;
let fresh = false;
let asking = false;
let soon = 0;

export function startRepos(): void {
  stream.onResync(() => outdated(0));
  stream.listen((events) => {
    const changed = events.some(({ name, data }) => name === "repo" || (name === "task" && (data as Task).status === "completed"));
    if (changed) outdated(SOON);
  });
}

/** Both lists, while a component wants them. */
export function useRepos(): Repos {
  useEffect(() => {
    users += 1;
    if (!fresh) outdated(0);
    return () => {
      users -= 1;
    };
  }, []);
  return useCell(repos);
}

/** How many events of a repository came: its settings are in them too. A removed one has nothing more to read. */
export const useEventsOfRepo = (url: string): number => useEvents(({ name, data }) => name === "repo" && isThere(data as Repo) && (data as Repo).URL === url, url);

const isThere = ({ Status: status }: Repo): boolean => status !== "removed";

/** Read both lists again. */
export function outdated(delay: number): void {
  fresh = false;
  if (users === 0 || soon) return;
  soon = window.setTimeout(() => {
    soon = 0;
    void readBoth();
  }, delay);
}

async function readBoth(): Promise<void> {
  if (asking) return outdated(SOON);
  asking = true;
  fresh = true;
  try {
    const [found, analyses] = await Promise.all([all<Repo>("/api/repos/registered"), all<Analysis>("/api/repos")]);
    repos.set({ repos: found, analyses, read: true, error: null });
  } catch (error) {
    fresh = false;
    repos.set({ ...repos.value, error });
  } finally {
    asking = false;
  }
}

async function all<T>(path: string): Promise<T[]> {
  const found: T[] = [];
  await readPages<T>(path, (page) => found.push(...page));
  return found;
}
