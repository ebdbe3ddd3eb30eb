// The answers of the API about one function (docs/reference/api.md).

export interface Block {
  start_line: number;
  start_column: number;
  end_line: number;
  end_column: number;
  statements: number;
  covered: boolean;
  /** Null if the profile does not count. */
  runs: number | null;
  parent: number | null;
}

export interface Source {
  first: number;
  lines: readonly string[];
  /** For each line `+` covered, `-` not covered, `~` partly covered, or a space. */
  marks: string;
  total: number;
}

interface Step {
  target: number;
  blocks: readonly number[];
  crap: number;
}

export interface Advice {
  kind: "none" | "cover" | "split";
  needed: number | null;
  blocks: number;
  steps: readonly Step[];
  crap: number;
  /** Blocks that have to be covered after the steps. */
  more: number;
  parts: number | null;
}

export interface Shown {
  id: string;
  task_id: string;
  repo_id: string;
  repo_url: string;
  project: string;
  ref: string;
  commit_sha: string;
  analyzed_at: string;
  key: string;
  others: readonly string[];
  file: string;
  package: string;
  function: string;
  line: number;
  end_line: number;
  cyclomatic: number;
  coverage: number | null;
  stmt_coverage: number | null;
  crap: number;
  threshold: number;
  state: string;
  reason: string;
  link: string | null;
  license: string;
  source: Source | null;
  source_reason: string;
  blocks: readonly Block[];
  blocks_reason: string;
  branches: readonly { line: number; column: number; token: string }[];
  advice: Advice | null;
  advice_reason: string;
}

export type Change = "added" | "code" | "moved" | "coverage";

export interface Point {
  task_id: string;
  commit_sha: string;
  analyzed_at: string;
  key: string;
  file: string;
  line: number;
  function: string;
  crap: number;
  cyclomatic: number;
  coverage: number | null;
  state: string;
  changes: readonly Change[] | null;
}

export interface FunctionHistory {
  points: readonly Point[];
  cut: boolean;
  last_change: {
    kind: "commit" | "between" | "unchanged" | "unknown";
    added: boolean;
    before: string;
    after: string;
    commit: { author: string; at: string; subject: string } | null;
  };
}
