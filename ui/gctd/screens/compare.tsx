// The changes between two analyses of a project: the verdict, the figures, every function that changed.

import { useEffect, useMemo, useState } from "preact/hooks";
import { Crumbs } from "../../kit/page/crumbs";
import { read, readPages } from "../../kit/data/http";
import { useLoad } from "../../kit/data/load";
import { go, Link, place, withQuery } from "../../kit/page/router";
import { complain, say } from "../../kit/parts/dialogs";
import { Empty, ErrorPanel, Skeleton } from "../../kit/parts/states";
import { utc } from "../../kit/parts/time";
import { useTitle } from "../../kit/page/title";
import { isMissing, sourceOf } from "../analysis/risk";
import type { Diff, Whole } from "../analysis/types";
import { Changes } from "../compare/changes";
import { Figures } from "../compare/figures";
import { Measured } from "../compare/measured";
import { judgementPath, PairVerdict } from "../compare/verdict";
import { projectName, repoName, shortCommit } from "../data/names";
import { analysisAt, comparisonAt, historyAt, repoAt } from "../data/places";
import type { ScreenProps } from "../screen";
import type { HistoryEntry } from "../data/types";
import "../analysis/analysis.css";

const ALL = "1000000";

interface Compared {
  diff: Diff;
  after: Whole;
  history: readonly HistoryEntry[];
}

export default function Comparison({ params }: ScreenProps) {
  const id = params["id"] ?? "";
  const [from = "", to = ""] = (params["pair"] ?? "").split("...");
  const { value, error, reload } = useLoad(
    async (signal): Promise<Compared> => {
      const history: HistoryEntry[] = [];
      const path = `/api/repos/${encodeURIComponent(id)}`;
      const query = new URLSearchParams({ limit: ALL, ...(from ? { from } : {}), ...(to ? { to } : {}) });
      const [diff] = await Promise.all([
        read<Diff>(`${path}/diff?${query}`, signal),
        readPages<HistoryEntry>(`${path}/history?limit=1000`, (page) => void history.push(...page), { signal }),
      ]);
      return { diff, after: await read<Whole>(`${path}?at=${diff.to.task_id}&entries=0`, signal), history };
    },
    [id, from, to],
  );
  if (error && !value) {
    return (
      <div class="page">
        <Crumbs above={[{ name: "Analyses", to: "/analyses" }, { name: "History", to: historyAt(id) }]} here="Comparison" />
        <h1>Comparison</h1>
        {isMissing(error) ? <Empty title="One of these analyses does not exist">{error instanceof Error ? <p>{error.message}</p> : null}</Empty> : <ErrorPanel error={error} retry={reload} />}
      </div>
    );
  }
  return value ? <Shown key={`${value.diff.from.task_id} ${value.diff.to.task_id}`} {...value} /> : <Skeleton lines={8} />;
}

function Shown({ diff, after, history }: Compared) {
  const name = projectName(diff.repo_url, diff.project);
  const [older, newer] = [shortCommit(diff.from.commit_sha), shortCommit(diff.to.commit_sha)];
  useTitle(`${name}: ${older} to ${newer}`, 1);
  // the address of a file at another commit differs in that only
  const source = useMemo(() => (side: "from" | "to") => after.source?.replace(after.repo_info.commit_sha, diff[side].commit_sha) ?? null, [after, diff]);
  return (
    <div class="page comparison">
      <Crumbs
        above={[
          { name: "Repositories", to: "/repos" },
          { name: repoName(diff.repo_url), to: repoAt(after.repo_id) },
          { name: diff.project === "." ? "latest analysis" : diff.project, to: analysisAt(diff.id) },
          { name: "History", to: historyAt(diff.id) },
        ]}
        here={`${older} to ${newer}`}
      />
      <header class="page-head">
        <div>
          <h1>{name}: changes</h1>
          <p class="muted">
            from <Side entry={diff.from} id={diff.id} /> to <Side entry={diff.to} id={diff.id} />
          </p>
          <p class="print-only">{location.href}</p>
        </div>
        <Tools diff={diff} />
      </header>
      <Choice diff={diff} history={history} />
      <Figures diff={diff} />
      <div class="panels">
        <section class="panel" aria-label="Gate">
          <header>
            <h2>Gate</h2>
          </header>
          <PairVerdict diff={diff} />
        </section>
        <section class="panel" aria-label="Measurement">
          <header>
            <h2>Measurement</h2>
          </header>
          <Measured diff={diff} />
        </section>
      </div>
      <Changes diff={diff} addressOf={(side, at) => sourceOf(source(side), at.file, at.line)} />
    </div>
  );
}

function Side({ entry, id }: { entry: HistoryEntry; id: string }) {
  return (
    <>
      <Link to={analysisAt(id, entry.task_id)}>
        <code>{shortCommit(entry.commit_sha)}</code>
      </Link>{" "}
      ({entry.ref}, {utc(entry.analyzed_at).slice(0, 16)} UTC)
    </>
  );
}

function Tools({ diff }: { diff: Diff }) {
  return (
    <p class="line no-print">
      <Link to={historyAt(diff.id)}>History</Link>
      <CopyMarkdown diff={diff} />
      <button type="button" class="small" onClick={() => print()}>
        Print
      </button>
    </p>
  );
}

/** The text of the comment for a pull request. */
function CopyMarkdown({ diff }: { diff: Diff }) {
  const [busy, setBusy] = useState(false);
  const path = diff.from.commit_sha === diff.to.commit_sha ? `/api/tasks/${diff.to.task_id}/export?format=markdown&from=${diff.from.task_id}` : judgementPath(diff, "gate.md", "pair");
  const copy = async () => {
    setBusy(true);
    try {
      await navigator.clipboard.writeText(await read<string>(path));
      say("The comparison is copied as Markdown.");
    } catch (error) {
      complain(error instanceof Error ? error.message : String(error));
    } finally {
      setBusy(false);
    }
  };
  if (!navigator.clipboard) return <a href={path}>As Markdown</a>; // on an origin that is not secure
  return (
    <button type="button" class="small" disabled={busy} onClick={() => void copy()}>
      Copy as Markdown
    </button>
  );
}

/** Two other analyses. */
function Choice({ diff, history }: { diff: Diff; history: readonly HistoryEntry[] }) {
  const [from, to] = [diff.from.task_id, diff.to.task_id];
  const open = (older: string, newer: string) => go(withQuery({ base: null, status: null, q: null, open: null }, comparisonAt(diff.id, older, newer)));
  useEffect(() => {
    // an address with a side left out, or with a commit, stays as it is
    if (place.value.path.endsWith("/compare/...")) go(withQuery({}, comparisonAt(diff.id, from, to)), { replace: true });
  }, []);
  const options = (
    <>
      {history.map((entry) => (
        <option key={entry.task_id} value={entry.task_id}>
          {shortCommit(entry.commit_sha)}, {entry.ref}, {utc(entry.analyzed_at).slice(0, 16)}
          {entry.break.length > 0 && ", measured differently"}
        </option>
      ))}
    </>
  );
  const known = new Set(history.map((entry) => entry.task_id));
  const other = (entry: HistoryEntry) =>
    known.has(entry.task_id) ? null : <option value={entry.task_id}>{`${shortCommit(entry.commit_sha)}, ${entry.ref}, ${utc(entry.analyzed_at).slice(0, 16)}`}</option>;
  return (
    <div class="line pair no-print">
      <label class="line">
        From
        <select value={from} onChange={(event) => open(event.currentTarget.value, to)}>
          {other(diff.from)}
          {options}
        </select>
      </label>
      <label class="line">
        To
        <select value={to} onChange={(event) => open(from, event.currentTarget.value)}>
          {other(diff.to)}
          {options}
        </select>
      </label>
      <button type="button" class="small" onClick={() => open(to, from)}>
        Swap
      </button>
    </div>
  );
}
