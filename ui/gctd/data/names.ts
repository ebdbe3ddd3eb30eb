// How things are called for people.

import type { Task } from "./types";

/** A repository: of a local one the folder's own name says enough. */
export function repoName(url: string): string {
  return url.startsWith("file:") ? (url.split("/").at(-1) ?? url) : url.replace(/^\w+:\/\//, "");
}

/** A project of a repository. */
export function projectName(url: string, project: string): string {
  return project === "." || project === "" ? repoName(url) : `${repoName(url)} · ${project}`;
}

/** The work of a long stage, and the reason for its length. */
const LONG_STAGES: Readonly<Record<string, string>> = {
  toolchain: "downloading Go, once per machine",
  stdlib: "preparing Go's standard library, built once per machine",
};

/** The stage of a running task, with its progress: `test, 12 of 31 packages, running x/y`. */
export function stageOf({ stage, progress }: Pick<Task, "stage" | "progress">): string {
  const name = LONG_STAGES[stage] ?? stage;
  if (!progress) return name || "starting";
  const { done, total, running, unit } = progress;
  const more = running.length > 2 ? ` and ${running.length - 2} more` : "";
  return `${name}, ${count(done)} of ${count(total)} ${unit}${running.length ? `, running ${running.slice(0, 2).join(", ")}${more}` : ""}`;
}

export const shortCommit = (sha: string): string => sha.slice(0, 12);

/** The ref of a task, with its commit as soon as that is known. */
export const pointOf = ({ ref, commit_sha: commit }: { ref: string; commit_sha?: string }): string => (commit && commit !== ref ? `${ref} ${commit.slice(0, 7)}` : ref);

export const score = (value: number): string => value.toFixed(2);

export const count = (value: number): string => value.toLocaleString("en");

export const plural = (number: number, one: string, many = `${one}s`): string => `${count(number)} ${number === 1 ? one : many}`;
