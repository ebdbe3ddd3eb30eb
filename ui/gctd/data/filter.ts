// The filter of tasks: `status:failed,expired repo:shop attempt:>1 is:seen word`.

import { repoName } from "./names";
import type { Task } from "./types";

type Test = (task: Task) => boolean;

const TEXTS: Readonly<Record<string, (task: Task) => string>> = {
  status: (task) => task.status,
  repo: (task) => task.repo_url,
  project: (task) => task.project,
  ref: (task) => task.ref,
  engine: (task) => task.engine,
  worker: (task) => task.worker,
  stage: (task) => (task.status === "running" ? task.stage : ""),
};

/** The names that a filter knows. */
export const NAMES: readonly string[] = [...Object.keys(TEXTS), "attempt", "is"];

function number(text: string): Test {
  const [, sign = "", digits = ""] = /^([<>]?)(\d+)$/.exec(text) ?? [];
  const wanted = Number(digits);
  if (!digits) return () => false;
  if (sign === ">") return (task) => task.attempt > wanted;
  return sign === "<" ? (task) => task.attempt < wanted : (task) => task.attempt === wanted;
}

function test(word: string): Test {
  const colon = word.indexOf(":");
  const name = word.slice(0, colon);
  const values = word
    .slice(colon + 1)
    .toLowerCase()
    .split(",");
  const text = TEXTS[name];
  if (colon > 0 && text) {
    if (name === "status") return (task) => values.includes(task.status);
    return (task) => values.some((value) => text(task).toLowerCase().includes(value));
  }
  if (colon > 0 && name === "attempt") return number(values[0] ?? "");
  if (colon > 0 && name === "is") return (task) => (values[0] === "seen" ? task.seen : !task.seen);
  const plain = word.toLowerCase();
  return (task) =>
    [task.id, repoName(task.repo_url), task.project, task.ref, task.worker, task.reason].some((part) =>
      part.toLowerCase().includes(plain),
    );
}

const words = (filter: string): string[] => filter.split(/\s+/).filter(Boolean);

/** Whether a task is wanted. Tasks that are marked as seen are wanted only with an `is:` in the filter. */
export function filterOf(filter: string): Test {
  const all = words(filter);
  const tests = all.map(test);
  if (!all.some((word) => word.startsWith("is:"))) tests.push((task) => !task.seen);
  return (task) => tests.every((each) => each(task));
}

/** The value that a filter has for a name; empty if it has none. */
export function valueOf(filter: string, name: string): string {
  return (
    words(filter)
      .find((word) => word.startsWith(`${name}:`))
      ?.slice(name.length + 1) ?? ""
  );
}

/** The filter with another value for a name; empty removes it. */
export function withValue(filter: string, name: string, value: string): string {
  const others = words(filter).filter((word) => !word.startsWith(`${name}:`));
  return (value ? [`${name}:${value}`, ...others] : others).join(" ");
}
