// The last events, in words. Kept whatever screen is open.

import { Cell, useCell } from "../../kit/data/cell";
import type { Live } from "../../kit/data/live";
import { stream } from "./live";
import { plural, projectName, repoName, shortCommit } from "./names";
import { analysisAt, repoAt, resultOf, taskAt } from "./places";
import { tasks } from "./tasks";
import type { Repo, Task } from "./types";

export interface Happened {
  /** Its position in the log. */
  id: string;
  text: string;
  to: string | null;
  at: string;
}

type Verdict = Record<"analysis_id" | "commit_sha" | "result", string>;
type Delivery = Record<"repo_url" | "commit_sha" | "status", string>;

interface Updates {
  ended_at: string | null;
  scheduled: number;
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
  if (name === "verdict") {
    const { analysis_id: analysis, commit_sha: commit, result } = data as Verdict;
    return { text: `gate of ${shortCommit(commit)} ${result === "unknown" ? "asked for" : result}`, to: analysisAt(analysis) };
  }
  if (name === "delivery") {
    const { repo_url: url, commit_sha: commit, status } = data as Delivery;
    return { text: `delivery of ${repoName(url)} at ${shortCommit(commit)} ${status}`, to: null };
  }
  if (name === "updates") {
    const { ended_at: ended, scheduled } = data as Updates;
    return { text: ended ? `check for updates queued ${plural(scheduled, "task")}` : "check for updates began", to: null };
  }
  const { id, stage, paused, running } = data as { id: string; stage?: string; paused?: boolean; running?: boolean };
  if (name === "worker") return { text: `${id} ${paused ? "is paused" : running ? "is present" : "ended"}`, to: "/workers" };
  const task = tasks.value.byId.get(id)?.task;
  const what = task ? projectName(task.repo_url, task.project) : id;
  return { text: name === "stage" ? `${what} reached ${stage ?? "a stage"}` : `log of ${what} stored`, to: taskAt(id) };
}
