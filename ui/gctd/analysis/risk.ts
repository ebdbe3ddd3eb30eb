// The CRAP value and its consequences (as the engines compute it), and the choice of functions.

import { Problem } from "../../kit/data/http";
import { isMeasured } from "../data/risky";
import type { FunctionEntry, HistoryEntry } from "../data/types";

/** The coverage (per cent) with which the value is not above `limit`; null if none is enough. */
export function coverageNeeded(cyclomatic: number, limit: number): number | null {
  if (cyclomatic > limit) return null;
  return Math.max(0, 100 * (1 - Math.cbrt((limit - cyclomatic) / cyclomatic ** 2)));
}

/** The value above which functions of an analysis are risky: its option is among the flags. */
export function thresholdOf(flags: readonly string[]): number {
  const given = flags.findLast((flag) => flag.startsWith("--threshold="));
  return given ? Number(given.slice(12)) : 30;
}

/** The directory of a function's file, `.` for the module's own. */
export function directoryOf(entry: FunctionEntry): string {
  const slash = entry.file.lastIndexOf("/");
  return slash < 0 ? "." : entry.file.slice(0, slash);
}

/** The name of a directory for readers: `root` for the module's own, as for the project of the root. */
export const directoryName = (directory: string): string => (directory === "." ? "root" : directory);

/** The address of a line at the commit, on the repository's host. */
export function sourceOf(source: string | null, file: string, line: number): string | null {
  if (!source) return null;
  const path = file.split("/").map(encodeURIComponent).join("/");
  return source.replace("{path}", () => path).replace("{line}", String(line));
}

/** The differences of the measurement, in words. */
export function brokenText(breaks: HistoryEntry["break"]): string {
  return breaks.map(({ what, before, after }) => `${what} ${before || "none"} → ${after || "none"}`).join(", ");
}

export const isMissing = (error: unknown): boolean => error instanceof Problem && error.status === 404;

export type Range = readonly [number, number];

/** Which functions are chosen, as the address has it. */
export interface Choice {
  /** Words of function, file or package. */
  text: string;
  directory: string;
  complexity: Range | null;
  coverage: Range | null;
  /** CRAP values above the first and up to the second. */
  crap: Range | null;
}

/** All functions. */
export const EVERY: Choice = { text: "", directory: "", complexity: null, coverage: null, crap: null };

/** `3-17`, or `30-` without an upper end, as a range; null for other texts. */
export function parseRange(text: string): Range | null {
  const found = /^(\d+(?:\.\d+)?)-(\d+(?:\.\d+)?)?$/.exec(text);
  return found ? [Number(found[1]), found[2] === undefined ? Infinity : Number(found[2])] : null;
}

export const rangeText = (range: Range | null): string => (range ? `${range[0]}-${range[1] === Infinity ? "" : range[1]}` : "");

/**
 * Whether a function is chosen. One whose coverage is not known counts as not covered, as in its value. A range of coverages or
 * values chooses no function that was not measured.
 */
export function isChosen({ text, directory, complexity, coverage, crap }: Choice): (entry: FunctionEntry) => boolean {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  return (entry) => {
    if (directory && directoryOf(entry) !== directory) return false;
    if (complexity && (entry.cyclomatic < complexity[0] || entry.cyclomatic > complexity[1])) return false;
    if ((coverage || crap) && !isMeasured(entry)) return false;
    const covered = entry.coverage ?? 0;
    if (coverage && (covered < coverage[0] || covered > coverage[1])) return false;
    if (crap && (entry.crap <= crap[0] || entry.crap > crap[1])) return false;
    const all = words.length ? `${entry.function} ${entry.file} ${entry.package}`.toLowerCase() : "";
    return words.every((word) => all.includes(word));
  };
}
