// The API's answers (docs/reference/api.md).

export type Status = "pending" | "queued" | "running" | "completed" | "failed" | "expired";

export const STATUSES: readonly Status[] = ["pending", "queued", "running", "completed", "failed", "expired"];

export interface Task {
  id: string;
  repo_url: string;
  project: string;
  ref: string;
  status: Status;
  engine: string;
  attempt: number;
  max_attempts: number;
  created_at: string;
  updated_at: string;
  seen: boolean;
  hidden: boolean;
  worker: string;
  stage: string;
  progress?: Progress;
  reason: string;
  analysis_id?: string;
  commit_sha?: string;
  rescored_from?: string;
  deleted?: boolean;
}

export interface Progress {
  done: number;
  total: number;
  running: readonly string[];
  unit: string;
}

export interface Stage {
  stage: string;
  started_at: string;
  duration_ms: number | null;
}

export interface Attempt {
  attempt: number;
  worker: string;
  started_at: string;
  ended_at: string | null;
  outcome: string | null;
  reason: string;
  stages: Stage[];
  log: { size: number; cut: number } | null;
}

export interface Summary {
  average: number;
  combined: number;
  exceeded: number;
  total_funcs: number;
}

export interface FunctionEntry {
  file: string;
  package: string;
  function: string;
  name: string;
  receiver: string;
  line: number;
  end_line: number;
  cyclomatic: number;
  coverage: number | null;
  stmt_coverage: number | null;
  crap: number;
  /** How far the coverage is known, and why no further. */
  state: string;
  reason: string;
  /** Its name in the address of its page. */
  key: string;
}

export interface Analysis {
  id: string;
  repo_id: string;
  project: string;
  task_id: string;
  /** Of the functions whose coverage is known, and how many functions have each state. */
  measured: Summary;
  states: Record<string, number>;
  repo_info: {
    url: string;
    ref: string;
    commit_sha: string;
    metadata: { stars: number; forks: number; language: string; license: string };
  };
  summary: Summary;
  engine: string;
  engine_version: string;
  crap_version: string;
  go_version: string;
  flags: string[];
  profile_digest: string | null;
  sandbox: string;
  uncovered: { path: string; reason: string }[];
  analyzed_at: string;
  duration_ms: number;
  rescored_from: string | null;
  entries?: FunctionEntry[];
  warnings?: unknown[];
}

export interface HistoryEntry {
  measured: Summary;
  task_id: string;
  commit_sha: string;
  ref: string;
  summary: Summary;
  engine: string;
  engine_version: string;
  go_version: string;
  flags: string[];
  analyzed_at: string;
  duration_ms: number;
  break: { what: string; before: unknown; after: unknown }[];
}

export interface Project {
  name: string;
  module_path: string;
  go_version: string;
  toolchain: string;
  in_workspace: boolean;
  packages: number;
  has_tests: boolean;
  problem: string | null;
}

export interface Repo {
  ID: string;
  URL: string;
  Status: "registering" | "ready" | "error" | "removed";
  StatusReason: string;
  CommitSHA: string;
  DefaultRef: string;
  RegisteredAt: string;
  ProfiledAt: string | null;
  Profile: { projects: Project[] };
}

export interface Worker {
  id: string;
  host: string;
  pid: number;
  cpu: number | null;
  memory: number | null;
  status: "idle" | "busy" | "paused" | "full" | "draining" | "gone";
  /** Why no job has room on its disk; empty unless its status is full. */
  reason: string;
  tasks: string[];
  concurrency: number | null;
  fast_concurrency: number | null;
  version: string;
  engines: Record<string, string>;
  go_version: string;
  fetches_go: boolean;
  platform: string;
  sandbox: string;
  started_at: string;
  /** When it was heard of last; null if it is gone. */
  heard_at: string | null;
}
