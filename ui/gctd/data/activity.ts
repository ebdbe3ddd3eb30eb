// The last events, in words. Kept whatever screen is open.

import { Cell, useCell } from "../../kit/data/cell";
import type { Live } from "../../kit/data/live";
import { stream } from "./live";
import { projectName, repoName } from "./names";
import { repoAt, resultOf, taskAt } from "./places";
import { tasks } from "./tasks";
import type { Repo, Task } from "./types";

export interface Happened {
  /** Its position in the log. */
  id: string;
  text: string;
  to: string | null;
  at: string;
}

const MOST = 50;

const happened = new Cell<readonly Happened[]>([]);

export function startActivity(): void {
  stream.listen((events) => {
    const lines = events.slice(-MOST).map((event) => ({ id: event.id, at: timeOf(event), ...inWords(event) }));
    happened.set([...lines.reverse(), ...happened.value].slice(0, MOST));
  });
}

/** The newest first. */
export const useActivity = (): readonly Happened[] => useCell(happened);

function timeOf({ data }: Live): string {
  const { updated_at, at } = data as { updated_at?: string; at?: string };
  return at ?? updated_at ?? new Date().toISOString();
}

function inWords({ name, data }: Live): { text: string; to: string | null } {
  if (name === "task") {
    const task = data as Task;
    const state = task.deleted ? "removed" : task.hidden ? "hidden" : task.status;
    return { text: `${projectName(task.repo_url, task.project)} ${state}`, to: task.deleted ? null : resultOf(task) };
  }
  if (name === "repo") {
    const repo = data as Repo;
    return { text: `${repoName(repo.URL)} ${repo.Status}`, to: repoAt(repo.ID) };
  }
  const { id, stage, paused, running } = data as { id: string; stage?: string; paused?: boolean; running?: boolean };
  if (name === "worker") return { text: `${id} ${paused ? "is paused" : running ? "is present" : "ended"}`, to: "/workers" };
  const task = tasks.value.byId.get(id)?.task;
  const what = task ? projectName(task.repo_url, task.project) : id;
  return { text: name === "stage" ? `${what} reached ${stage ?? "a stage"}` : `log of ${what} stored`, to: taskAt(id) };
}
