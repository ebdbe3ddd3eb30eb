// What the API answers with about one project: its analyses, what changed between two, what the gate says (docs/api.md).

import type { Analysis, FunctionEntry, HistoryEntry } from "../types";

export interface Whole extends Analysis {
  entries: FunctionEntry[];
  warnings: { kind: string; path: string; reason: string }[];
  /** Where a file is shown, with `{path}` and `{line}` in it. */
  source: string | null;
}

export interface Values {
  file: string;
  line: number;
  crap: number;
  cyclomatic: number;
  coverage: number | null;
}

export interface Change {
  status: "new" | "fixed" | "worse" | "better" | "gone";
  function: string;
  package: string;
  file: string;
  line: number;
  delta: number;
  before: Values | null;
  after: Values | null;
}

export interface Diff {
  from: HistoryEntry;
  to: HistoryEntry;
  break: HistoryEntry["break"];
  threshold: number;
  partial: boolean;
  counts: Record<Change["status"] | "unchanged", number>;
  functions: Change[];
}

export interface Gate {
  passed: boolean;
  from: HistoryEntry | null;
  to: HistoryEntry;
  threshold: number;
  checks: { name: string; passed: boolean | null; limit: number; value: number | null; text: string }[];
  offending: number;
  functions: { checks: string[]; function: string; package: string; before: Values | null; after: Values }[];
}
