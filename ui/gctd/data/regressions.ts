// Which projects got worse within a week, by their histories.

import { read } from "../../kit/data/http";
import type { Analysis, HistoryEntry } from "./types";

const WEEK = 7 * 86_400_000;
/** How many projects are compared at most. */
export const MOST_PROJECTS = 40;
const AT_A_TIME = 4;
const SMALLEST = 0.01;

export interface Change {
  analysis: Analysis;
  /** The average a week ago, or of the first analysis since. */
  before: number;
  by: number;
  /** How many more functions are risky. */
  exceeded: number;
  /** Whether Go, the engine or the like changed between. */
  measured: boolean;
}

/** The projects that got worse, the worst first. Of very many projects only the ones that were analysed last. */
export async function regressions(analyses: readonly Analysis[], signal: AbortSignal): Promise<readonly Change[]> {
  const since = Date.now() - WEEK;
  const left = analyses
    .filter((analysis) => Date.parse(analysis.analyzed_at) >= since)
    .sort((a, b) => (a.analyzed_at < b.analyzed_at ? 1 : -1))
    .slice(0, MOST_PROJECTS);
  const found: Change[] = [];
  const work = async () => {
    for (let analysis = left.shift(); analysis; analysis = left.shift()) {
      const change = changeOf(analysis, await read<HistoryEntry[]>(`/api/repos/${analysis.id}/history?ref=${encodeURIComponent(analysis.repo_info.ref)}&limit=100`, signal), since);
      if (change && change.by >= SMALLEST) found.push(change);
    }
  };
  await Promise.all(Array.from({ length: AT_A_TIME }, work));
  return found.sort((a, b) => b.by - a.by);
}

function changeOf(analysis: Analysis, history: readonly HistoryEntry[], since: number): Change | null {
  const older = history.findIndex((entry) => Date.parse(entry.analyzed_at) < since);
  const from = older < 0 ? history.length - 1 : older;
  const base = history[from];
  if (!base || from === 0) return null;
  return {
    analysis,
    before: base.measured.average,
    by: analysis.measured.average - base.measured.average,
    exceeded: analysis.measured.exceeded - base.measured.exceeded,
    measured: history.slice(0, from).some((entry) => entry.break.length > 0),
  };
}
