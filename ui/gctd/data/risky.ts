// Risky functions: functions with a CRAP value above the threshold, by a coverage that is known.

import { score } from "./names";
import type { FunctionEntry } from "./types";

const KNOWN = new Set(["measured", "other_tests", "no_tests"]);
/** A rule leaves them out: they are in no figure. */
const EXCLUDED = "excluded";

export const isMeasured = ({ state }: { state: string }): boolean => KNOWN.has(state);

export const isRisky = (entry: Pick<FunctionEntry, "crap" | "state">, threshold: number): boolean => entry.crap > threshold && isMeasured(entry);

/** How many functions could not be measured. */
export function unmeasuredOf({ states }: { states: Readonly<Record<string, number>> }): number {
  return Object.entries(states).reduce((sum, [state, times]) => sum + (isMeasured({ state }) || state === EXCLUDED ? 0 : times), 0);
}

/** A state in words. */
export const stateText = (state: string): string => (isMeasured({ state }) ? "" : state.replaceAll("_", " "));

/** The CRAP value of a function, if it is known. */
export const scoreText = (entry: Pick<FunctionEntry, "crap" | "state">): string => (isMeasured(entry) ? score(entry.crap) : "not measured");

/** How much of a function is covered, or why that is not known. */
export function coveredText(entry: Pick<FunctionEntry, "coverage" | "state">): string {
  if (!isMeasured(entry)) return stateText(entry.state);
  return entry.coverage === null ? "coverage not known" : `${entry.coverage.toFixed(1)} % covered`;
}
