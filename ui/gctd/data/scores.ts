// The results of completed tasks. The results of a project are read together, when the first of them is looked at.

import { Cell } from "../../kit/data/cell";
import { readPages } from "../../kit/data/http";
import type { HistoryEntry, Summary, Task } from "./types";

const summaries = new Map<string, Summary>();
const asked = new Map<string, Set<string>>();
/** Tasks that no history of their project has: they are not asked for again. */
const unknown = new Set<string>();

/** Called when more is known. */
export const scores = new Cell<ReadonlyMap<string, Summary>>(summaries);

/** The result of a completed task; undefined while it is being read, or if it is not known. */
export function scoreOf(task: Task): Summary | undefined {
  if (task.status !== "completed" || !task.analysis_id) return undefined;
  const found = summaries.get(task.id);
  if (!found && !unknown.has(task.id)) void ask(task.analysis_id, task.id);
  return found;
}

async function ask(analysis: string, task: string): Promise<void> {
  const before = asked.get(analysis) ?? new Set();
  if (before.has(task)) return;
  asked.set(analysis, before.add(task));
  await Promise.resolve(); // what else is drawn now is answered by the same reading
  if (summaries.has(task) || [...before][0] !== task) return;
  const wanted = [...before];
  try {
    await readPages<HistoryEntry>(`/api/repos/${analysis}/history?limit=1000`, (page) => {
      for (const entry of page) summaries.set(entry.task_id, entry.measured);
      scores.tell();
      return wanted.some((each) => !summaries.has(each));
    });
    for (const each of wanted) if (!summaries.has(each)) unknown.add(each);
  } catch {
    return; // the list is worth showing without scores; the task itself shows the error
  } finally {
    asked.delete(analysis);
  }
}
