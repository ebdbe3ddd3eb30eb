// The repositories: register one, see their projects, whether they moved, how they are measured.

import { useMemo, useRef, useState } from "preact/hooks";
import { complain, say } from "../../kit/parts/dialogs";
import { ask, textOf } from "../../kit/data/http";
import { useKeys } from "../../kit/page/keys";
import { Pill } from "../../kit/parts/pill";
import { Link, useQuery } from "../../kit/page/router";
import { Empty, ErrorPanel, Skeleton } from "../../kit/parts/states";
import { type Column, parseSort, sorted, sortText, Table } from "../../kit/parts/table";
import { Ago } from "../../kit/parts/time";
import { count, plural, projectName, repoName, score, shortCommit } from "../data/names";
import { repoAt, scoreAt } from "../data/places";
import type { Update } from "../repo/project";
import { Register } from "../repo/register";
import { outdated, useRepos } from "../data/repos";
import type { Analysis, Repo } from "../data/types";

interface Row {
  repo: Repo;
  analyses: readonly Analysis[];
}

const latestOf = ({ analyses }: Row): string => analyses.reduce((latest, { analyzed_at }) => (analyzed_at > latest ? analyzed_at : latest), "");
const sumOf = ({ analyses }: Row, of: (analysis: Analysis) => number): number => analyses.reduce((sum, analysis) => sum + of(analysis), 0);

function averageOf(row: Row): number | null {
  const functions = sumOf(row, (one) => one.measured.total_funcs);
  return functions ? sumOf(row, (one) => one.measured.combined) / functions : null;
}

/** Ref and commit of the figures of a row, which projects with other settings do not share. */
function Measured({ analyses }: { analyses: readonly Analysis[] }) {
  const points = [...new Set(analyses.map(({ repo_info }) => `${repo_info.ref} ${shortCommit(repo_info.commit_sha)}`))];
  if (points.length === 0) return null;
  return points.length === 1 ? <code>{points[0]}</code> : <span title={points.join("\n")}>{plural(points.length, "commit")}</span>;
}

const COLUMNS: readonly Column<Row>[] = [
  { id: "status", title: "Status", width: "128px", by: ({ repo }) => repo.Status, cell: ({ repo }) => <Pill state={repo.Status} />, phone: "first" },
  {
    id: "name",
    title: "Repository",
    by: ({ repo }) => repo.URL,
    cell: ({ repo }) => (
      <Link to={repoAt(repo.ID)} data-row title={repo.URL} class="name">
        {repoName(repo.URL)}
      </Link>
    ),
    phone: "first",
  },
  {
    id: "projects",
    title: "Projects",
    width: "84px",
    align: "right",
    by: ({ repo }) => repo.Profile.projects.length,
    cell: ({ repo }) => count(repo.Profile.projects.length),
    phone: "hidden",
  },
  {
    id: "commit",
    title: "Ref and commit",
    width: "200px",
    cell: ({ repo, analyses }) => (repo.Status === "error" ? <span title={repo.StatusReason}>{repo.StatusReason}</span> : <Measured analyses={analyses} />),
  },
  {
    id: "functions",
    title: "Functions",
    width: "92px",
    align: "right",
    by: (row) => sumOf(row, (one) => one.measured.total_funcs),
    cell: (row) => (row.analyses.length ? count(sumOf(row, (one) => one.measured.total_funcs)) : ""),
    phone: "hidden",
  },
  {
    id: "exceeded",
    title: "Risky",
    width: "68px",
    align: "right",
    by: (row) => sumOf(row, (one) => one.measured.exceeded),
    cell: (row) => (row.analyses.length ? <Link to={scoreAt(row.repo.URL, row.analyses)}>{count(sumOf(row, (one) => one.measured.exceeded))}</Link> : ""),
    phone: "hidden",
  },
  {
    id: "average",
    title: "CRAP",
    width: "76px",
    align: "right",
    by: (row) => averageOf(row) ?? -1,
    cell: (row) => {
      const average = averageOf(row);
      return average === null ? (
        ""
      ) : (
        <Link to={scoreAt(row.repo.URL, row.analyses)} title="average CRAP">
          {score(average)}
        </Link>
      );
    },
    phone: "first",
  },
  {
    id: "analysed",
    title: "Analysed",
    width: "84px",
    align: "right",
    by: latestOf,
    cell: (row) => (latestOf(row) ? <Ago at={latestOf(row)} /> : <span class="muted">never</span>),
  },
];

export default function Repositories() {
  const { repos, analyses, read, error } = useRepos();
  const [filter, setFilter] = useQuery("q");
  const [sortQuery, setSort] = useQuery("sort");
  const search = useRef<HTMLInputElement>(null);
  const address = useRef<HTMLInputElement>(null);
  useKeys([
    { keys: "/", does: "filter", run: () => search.current?.focus() },
    { keys: "a", does: "register a repository", run: () => address.current?.focus() },
  ]);
  const rows = useMemo(() => {
    const byRepo = new Map<string, Analysis[]>();
    for (const analysis of analyses) byRepo.set(analysis.repo_id, [...(byRepo.get(analysis.repo_id) ?? []), analysis]);
    const words = filter.toLowerCase().split(/\s+/).filter(Boolean);
    const wanted = repos.filter(({ URL: url, Status: status }) => words.every((word) => url.toLowerCase().includes(word) || status === word));
    return sorted(
      wanted.map((repo) => ({ repo, analyses: byRepo.get(repo.ID) ?? [] })),
      COLUMNS,
      parseSort(sortQuery),
    );
  }, [repos, analyses, filter, sortQuery]);
  return (
    <div class="page full">
      <h1 class="hidden-text">Repositories</h1>
      <section class="list" aria-label="Repositories">
        <Register input={address} />
        {repos.length > 0 && (
          <div class="toolbar">
            <input
              ref={search}
              type="search"
              aria-label="Filter repositories"
              placeholder="filter: words of the address, or ready, error"
              value={filter}
              spellcheck={false}
              autocomplete="off"
              onInput={(event) => setFilter(event.currentTarget.value, { replace: true })}
              onKeyDown={(event) => event.key === "Escape" && event.currentTarget.blur()}
            />
            <CheckAll />
          </div>
        )}
        {error ? <ErrorPanel error={error} retry={() => outdated(0)} /> : null}
        {!read && !error && <Skeleton lines={6} />}
        {read && repos.length === 0 && (
          <Empty title="No repository yet">
            <p>Give the address of one that has a go.mod.</p>
          </Empty>
        )}
        {read && repos.length > 0 && rows.length === 0 && (
          <Empty title={`No repository matches ${filter}`}>
            <button type="button" onClick={() => setFilter("")}>
              Clear the filter
            </button>
          </Empty>
        )}
        {rows.length > 0 && (
          <Table
            label="Repositories"
            rows={rows}
            keyOf={({ repo }) => repo.ID}
            columns={COLUMNS}
            sort={parseSort(sortQuery)}
            onSort={(sort) => setSort(sortText(sort))}
          />
        )}
      </section>
    </div>
  );
}

const LONG = 160_000;
/** Skipped projects that a message names. */
const NAMED = 5;

/** The result of a check in words. A project whose ref was not looked up is no checked one. */
function resultOf(found: readonly Update[]): string {
  const times = (holds: (update: Update) => boolean) => found.filter(holds).length;
  const failed = times(({ error }) => error !== null);
  const skipped = found.filter(({ error, remote_sha: commit }) => error === null && commit === null);
  const names = skipped.slice(0, NAMED).map(({ repo_url: url, project }) => projectName(url, project ?? "."));
  return [
    `${plural(found.length - failed - skipped.length, "project")} checked: ${count(times(({ moved }) => moved))} moved, ${count(times(({ scheduled }) => scheduled))} queued.`,
    ...(failed ? [`${count(failed)} could not be looked up.`] : []),
    ...(skipped.length ? [`${count(skipped.length)} skipped: ${names.join(", ")}${skipped.length > NAMED ? ", …" : ""}.`] : []),
  ].join(" ");
}

/** Looks up the present commits of all refs, and has moved ones analysed. */
function CheckAll() {
  const [busy, setBusy] = useState(false);
  const check = async () => {
    setBusy(true);
    try {
      let found: Update[] = [];
      for (let next: string | null = "/api/repos/check-updates"; next; ) {
        const answer: { body: Update[]; next: string | null } = await ask<Update[]>("POST", next, { body: { schedule: true }, patience: LONG });
        found = [...found, ...answer.body];
        next = answer.next;
      }
      say(resultOf(found));
    } catch (error) {
      complain(textOf(error));
    } finally {
      setBusy(false);
    }
  };
  return (
    <button type="button" disabled={busy} onClick={() => void check()} title="Look up the commits of all refs, and analyse the refs that have moved">
      {busy ? "Checking…" : "Analyse what moved"}
    </button>
  );
}
