// Risky functions: functions with a CRAP value above the threshold, by a coverage that is known.

import { score } from "./names";
import type { FunctionEntry, Summary } from "./types";

const KNOWN = new Set(["measured", "other_tests", "no_tests"]);
/** Reports from before there were states: their functions are taken as they are. */
const UNTOLD = "untold";
/** A rule leaves them out: they are in no figure. */
const EXCLUDED = "excluded";

export const isMeasured = ({ state = UNTOLD }: { state?: string }): boolean => state === UNTOLD || KNOWN.has(state);

export const isRisky = (entry: Pick<FunctionEntry, "crap" | "state">, threshold: number): boolean => entry.crap > threshold && isMeasured(entry);

interface Figures {
  summary: Summary;
  measured?: Summary | null;
  states?: Record<string, number> | null;
}

/** The figures of an analysis: of the functions that were measured, if the engine recorded which ones. */
export const figuresOf = ({ summary, measured }: Figures): Summary => measured ?? summary;

/** How many functions are risky. */
export const riskyOf = (analysis: Figures): number => figuresOf(analysis).exceeded;

/** How many functions could not be measured; null if the engine did not say. */
export function unmeasuredOf({ states }: Figures): number | null {
  if (!states) return null;
  return Object.entries(states).reduce((sum, [state, times]) => sum + (isMeasured({ state }) || state === EXCLUDED ? 0 : times), 0);
}

/** A state in words. */
export const stateText = (state = UNTOLD): string => (isMeasured({ state }) ? "" : state.replaceAll("_", " "));

/** The CRAP value of a function, if it is known. */
export const scoreText = (entry: Pick<FunctionEntry, "crap" | "state">): string => (isMeasured(entry) ? score(entry.crap) : "not measured");

/** How much of a function is covered, or why that is not known. */
export function coveredText(entry: Pick<FunctionEntry, "coverage" | "state">): string {
  if (!isMeasured(entry)) return stateText(entry.state);
  return entry.coverage === null ? "coverage not known" : `${entry.coverage.toFixed(1)} % covered`;
}
