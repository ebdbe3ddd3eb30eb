// The addresses of pages, by their subject.

import type { Analysis, Task } from "./types";

export const repoAt = (id: string): string => `/repos/${id}`;

export const taskAt = (id: string): string => `/tasks/${id}`;

/** The latest analysis of a project, or the analysis of a task. */
export const analysisAt = (id: string, task = ""): string => `/analyses/${id}${task ? `?task=${task}` : ""}`;

export const historyAt = (id: string): string => `/analyses/${id}/history`;

/** The changes between two analyses, each given by a task or a commit; an empty one is the usual. */
export const comparisonAt = (id: string, from: string, to: string): string => `/analyses/${id}/compare/${from}...${to}`;

/** The page of a function by its key: in the analysis of a task, else in the latest one. */
export const functionAt = (id: string, key: string, task = ""): string =>
  `/analyses/${id}/functions/${encodeURIComponent(key).replaceAll("%3A", ":")}${task ? `?task=${task}` : ""}`;

/** The page of a task: its analysis, else the task itself. */
export const resultOf = (task: Task): string => (task.status === "completed" && task.analysis_id ? analysisAt(task.analysis_id, task.id) : taskAt(task.id));

/** The page behind the score of some projects: the analysis of the only one, else the list of these. */
export function scoreAt(repoUrl: string, analyses: readonly Analysis[]): string {
  const [only] = analyses;
  return only && analyses.length === 1 ? analysisAt(only.id) : `/analyses?q=${encodeURIComponent(repoUrl)}`;
}
