// What a user does to tasks and repositories, with what is asked before and said after.

import { complain, confirm, offerUndo, say } from "../kit/dialogs";
import { ask, newKey, textOf } from "../kit/http";
import { plural, projectName } from "./names";
import { takeOut } from "./tasks";
import type { Task } from "./types";

const AT_A_TIME = 8;

export const canCancel = (task: Task): boolean => ["pending", "queued", "running"].includes(task.status);
export const canRetry = (task: Task): boolean => ["failed", "expired"].includes(task.status);

/** Do it for each, some at a time; gives how many succeeded, and says why others did not. */
async function each(tasks: readonly Task[], action: (task: Task) => Promise<unknown>): Promise<number> {
  const left = [...tasks];
  let done = 0;
  let failure: unknown = null;
  const work = async () => {
    for (let task = left.shift(); task; task = left.shift()) {
      try {
        await action(task);
        done += 1;
      } catch (error) {
        failure = error;
      }
    }
  };
  await Promise.all(Array.from({ length: AT_A_TIME }, work));
  if (failure !== null) complain(tasks.length === 1 ? textOf(failure) : `${tasks.length - done} of ${tasks.length} not done: ${textOf(failure)}`);
  return done;
}

const named = (tasks: readonly Task[]): string => {
  const [only] = tasks;
  return tasks.length === 1 && only ? projectName(only.repo_url, only.project) : plural(tasks.length, "task");
};

export async function cancel(chosen: readonly Task[]): Promise<void> {
  const tasks = chosen.filter(canCancel);
  if (tasks.length === 0) return say("None of these waits or runs.");
  const yes = await confirm({
    title: tasks.length === 1 ? `Cancel the analysis of ${named(tasks)}?` : `Cancel ${named(tasks)}?`,
    text: "Tests that run are ended. The tasks stay in the list as failed, and can be retried.",
    action: `Cancel ${plural(tasks.length, "task")}`,
  });
  if (!yes) return;
  const done = await each(tasks, (task) => ask("POST", `/api/tasks/${task.id}/cancel`, { key: newKey() }));
  if (done) say(`${plural(done, "task")} cancelled.`);
}

export async function retry(chosen: readonly Task[]): Promise<void> {
  const tasks = chosen.filter(canRetry);
  if (tasks.length === 0) return say("None of these has failed or expired.");
  const yes = await confirm({
    title: tasks.length === 1 ? `Analyse ${named(tasks)} again?` : `Retry ${named(tasks)}?`,
    text: "They run with the settings that they were scheduled with, and have as many attempts as a new task.",
    action: `Retry ${plural(tasks.length, "task")}`,
  });
  if (!yes) return;
  const done = await each(tasks, (task) => ask("POST", `/api/tasks/${task.id}/retry`, { key: newKey() }));
  if (done) say(`${plural(done, "task")} queued again.`);
}

/** Mark as seen, which takes them out of the list; it can be undone for a moment. */
export function seen(chosen: readonly Task[]): void {
  const tasks = chosen.filter((task) => !task.seen);
  if (tasks.length === 0) return;
  const { putBack, settle } = takeOut(tasks.map((task) => task.id));
  offerUndo(`${tasks.length === 1 ? named(tasks) : plural(tasks.length, "task")} marked as seen.`, {
    act: () => void each(tasks, (task) => ask("POST", `/api/tasks/${task.id}/seen`, { keepalive: true })).then((done) => (done < tasks.length ? putBack() : settle())),
    undo: putBack,
  });
}

/** Hide all that are known now: what comes later stays. */
export function hideAll(shown: readonly Task[]): void {
  const ended = shown.filter((task) => !task.hidden && !task.seen);
  if (ended.length === 0) return say("There is no task to hide.");
  const newest = ended.reduce((latest, { created_at }) => (created_at > latest ? created_at : latest), "");
  const { putBack, settle } = takeOut(ended.map((task) => task.id));
  offerUndo(`${plural(ended.length, "task")} hidden.`, {
    act: () => {
      const path = `/api/tasks/hide-all?until=${encodeURIComponent(newest)}`;
      ask("POST", path, { keepalive: true, patience: 60_000 }).then(settle, (error) => {
        putBack();
        complain(textOf(error));
      });
    },
    undo: putBack,
  });
}

/** Schedule an analysis of one project, or of all of a repository. */
export async function analyse(url: string, project: string | null): Promise<void> {
  try {
    const body = { repo_url: url, ...(project === null ? {} : { project }) };
    const { body: queued } = await ask<Task[]>("POST", "/api/repos/analyze", { body, key: newKey() });
    say(`${plural(queued.length, "analysis", "analyses")} queued.`);
  } catch (error) {
    complain(textOf(error));
  }
}
