// The addresses of pages, by what they show.

import type { Analysis, Task } from "./types";

export const repoAt = (id: string): string => `/repos/${id}`;

export const taskAt = (id: string): string => `/tasks/${id}`;

/** The latest analysis of a project, or the one that a task led to. */
export const analysisAt = (id: string, task = ""): string => `/analyses/${id}${task ? `?task=${task}` : ""}`;

export const historyAt = (id: string): string => `/analyses/${id}/history`;

/** The page that a task leads to: its analysis, else the task itself. */
export const resultOf = (task: Task): string => (task.status === "completed" && task.analysis_id ? analysisAt(task.analysis_id, task.id) : taskAt(task.id));

/** The page that the score of some projects leads to: the analysis of the only one, else the list of these. */
export function scoreAt(repoUrl: string, analyses: readonly Analysis[]): string {
  const [only] = analyses;
  return only && analyses.length === 1 ? analysisAt(only.id) : `/analyses?q=${encodeURIComponent(repoUrl)}`;
}
