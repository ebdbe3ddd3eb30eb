// Actions of a user on tasks and repositories, with the questions before and the messages after.

import { complain, confirm, offerUndo, say } from "../../kit/parts/dialogs";
import { ask, newKey, textOf } from "../../kit/data/http";
import { plural, projectName, repoName } from "./names";
import { takeOut } from "./tasks";
import type { Repo, Task } from "./types";

const AT_A_TIME = 8;
const LONG = 120_000;
const ENDED: ReadonlySet<string> = new Set(["completed", "failed", "expired"]);

export const canCancel = (task: Task): boolean => ["pending", "queued", "running"].includes(task.status);
export const canRetry = (task: Task): boolean => ["failed", "expired"].includes(task.status);

/** Do it for each, some at a time; gives how many succeeded, and shows the errors of the others. */
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
  if (tasks.length === 0) return say("The chosen tasks have ended already.");
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
  if (tasks.length === 0) return say("The chosen tasks have not failed or expired.");
  const yes = await confirm({
    title: tasks.length === 1 ? `Analyse ${named(tasks)} again?` : `Retry ${named(tasks)}?`,
    text: "They run with the settings of their first run, and have the attempts of a new task.",
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

/** A page that is left may still send 64 KB: two requests of this size. */
const IDS_AT_A_TIME = 1000;

/** Hide the ended tasks of a list, for all users. */
export async function hideAll(shown: readonly Task[]): Promise<void> {
  const known = shown.filter((task) => ENDED.has(task.status));
  if (known.length === 0) return say("No task of this list has ended.");
  const yes = await confirm({
    title: `Hide ${plural(known.length, "task")}?`,
    text: "They leave the lists of all users, and stay in the event log. Tasks that wait or run stay.",
    action: `Hide ${plural(known.length, "task")}`,
  });
  if (!yes) return;
  const ids = known.map((task) => task.id);
  const { putBack, settle } = takeOut(ids);
  offerUndo(`${plural(known.length, "task")} hidden.`, {
    act: () => {
      const parts = Array.from({ length: Math.ceil(ids.length / IDS_AT_A_TIME) }, (_, part) => ids.slice(part * IDS_AT_A_TIME, (part + 1) * IDS_AT_A_TIME));
      const sent = parts.map((part, index) => ask("POST", "/api/tasks/hide-all", { body: { ids: part }, keepalive: index < 2, patience: 60_000 }));
      Promise.all(sent).then(settle, (error) => {
        putBack();
        complain(textOf(error));
      });
    },
    undo: putBack,
  });
}

/** Remove a repository with its tasks and analyses. Gives whether it was removed. */
export async function removeRepo(repo: Repo): Promise<boolean> {
  const yes = await confirm({
    title: `Remove ${repoName(repo.URL)}?`,
    text: "Its tasks that run are cancelled. Its settings, tasks and analyses are removed. The event log keeps the history.",
    action: "Remove the repository",
  });
  if (!yes) return false;
  try {
    await ask("DELETE", `/api/repos/registered?url=${encodeURIComponent(repo.URL)}`, { patience: LONG });
    say(`${repoName(repo.URL)} removed.`);
    return true;
  } catch (error) {
    complain(textOf(error));
    return false;
  }
}

/** Score the stored coverage profile of a project's latest analysis again; no tests are run. */
export async function rescore(url: string, project: string): Promise<void> {
  try {
    const { body: queued } = await ask<Task[]>("POST", "/api/repos/rescore", { body: { repo_url: url, project }, key: newKey() });
    say(`${plural(queued.length, "rescore")} queued.`);
  } catch (error) {
    complain(textOf(error));
  }
}

/** Schedule an analysis of one project, or of all of a repository. `again`: the tests run also if the commit was analysed before. */
export async function analyse(url: string, project: string | null, again = false): Promise<void> {
  try {
    const body = { repo_url: url, ...(project === null ? {} : { project }), ...(again ? { again } : {}) };
    const { body: queued } = await ask<Task[]>("POST", "/api/repos/analyze", { body, key: newKey() });
    say(`${plural(queued.length, "analysis", "analyses")} queued.`);
  } catch (error) {
    complain(textOf(error));
  }
}

/** Analyse a repository that has no analysis yet: once for each registration, also where several pages ask for it. */
export async function analyseFirst(repo: Repo): Promise<void> {
  try {
    const key = `first-${repo.ID}-${repo.RegisteredAt}`;
    const { isReplayed } = await ask<Task[]>("POST", "/api/repos/analyze", { body: { repo_url: repo.URL }, key });
    if (!isReplayed) say("The analysis begins.");
  } catch (error) {
    complain(textOf(error));
  }
}

/** Analyse all projects at another ref; the setting stays. Gives whether it was queued. */
export async function analyseOnce(url: string, ref: string): Promise<boolean> {
  try {
    const { body: queued } = await ask<Task[]>("POST", "/api/repos/analyze", { body: { repo_url: url, ref, once: true }, key: newKey() });
    say(`${plural(queued.length, "analysis", "analyses")} of ${ref} queued.`);
    return true;
  } catch (error) {
    complain(textOf(error));
    return false;
  }
}
