// The answers of the API about one project: its analyses, differences, the gate (docs/reference/api.md).

import type { Analysis, FunctionEntry, HistoryEntry } from "../data/types";

export interface Whole extends Analysis {
  entries: FunctionEntry[];
  warnings: { kind: string; path: string; reason: string }[];
  /** The address of a file's source, with `{path}` and `{line}` in it. */
  source: string | null;
}

export interface Values {
  /** Names the function in the address of its page, in the analysis that the values are of. */
  key: string;
  file: string;
  line: number;
  crap: number;
  cyclomatic: number;
  coverage: number | null;
  state: string;
  reason: string;
}

export interface Change {
  status: "new" | "fixed" | "worse" | "better" | "gone" | "unmeasured" | "measured";
  function: string;
  package: string;
  file: string;
  line: number;
  delta: number;
  before: Values | null;
  after: Values | null;
  /** "moved", "renamed", "signature changed". */
  kept: readonly string[];
  similarity: number | null;
  body_changed: boolean;
}

interface Place {
  key: string;
  file: string;
  line: number;
  function: string;
}

export interface Kept {
  kept: readonly string[];
  from: Place;
  to: Place;
  similarity: number | null;
}

/** An analysis of a comparison. */
export type Side = HistoryEntry & { states: Readonly<Record<string, number>> };

export interface Diff {
  id: string;
  repo_url: string;
  project: string;
  from: Side;
  to: Side;
  break: HistoryEntry["break"];
  threshold: number;
  partial: boolean;
  counts: Partial<Record<Change["status"] | "unchanged", number>>;
  functions: Change[];
  kept: Kept[];
}

export interface Gate {
  result: "passed" | "failed" | "unknown";
  /** Why the result is unknown; else empty. */
  reason: string;
  /** The id of the stored verdict; null if it is not stored. */
  verdict: string | null;
  /** Of all analyses of the project. */
  id: string;
  base: { kind: string; commit_sha: string; task_id: string | null };
  from: HistoryEntry | null;
  to: HistoryEntry;
  threshold: number;
  checks: { name: string; passed: boolean | null; limit: number; value: number | null; text: string }[];
  /** How many functions are also worse, not measured, or left the measured set, of which the lists have some. */
  rising: number;
  worsened: { function: string }[];
  lacking: number;
  unmeasured: { function: string; reason: string }[];
  leaving: number;
  excluded: { function: string; reason: string }[];
  offending: number;
  functions: { checks: string[]; function: string; package: string; before: Values | null; after: Values }[];
}
