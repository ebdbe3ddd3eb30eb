// The repositories: register one, see their projects, whether they moved, how they are measured.

import { useMemo, useRef, useState } from "preact/hooks";
import { complain, say } from "../../kit/dialogs";
import { ask, Problem, textOf } from "../../kit/http";
import { useKeys } from "../../kit/keys";
import { Pill } from "../../kit/pill";
import { go, Link, useQuery, withQuery } from "../../kit/router";
import { Empty, ErrorPanel, Skeleton } from "../../kit/states";
import { type Column, parseSort, sorted, sortText, Table } from "../../kit/table";
import { Ago } from "../../kit/time";
import { canonical, problemOf } from "../address";
import { count, repoName, score, shortCommit } from "../names";
import { outdated, useRepos } from "../repos";
import type { ScreenProps } from "../routes";
import type { Analysis, Repo } from "../types";
import { RepoDrawer } from "./repo";

interface Row {
  repo: Repo;
  analyses: readonly Analysis[];
}

const latestOf = ({ analyses }: Row): string => analyses.reduce((latest, { analyzed_at }) => (analyzed_at > latest ? analyzed_at : latest), "");
const sumOf = ({ analyses }: Row, of: (analysis: Analysis) => number): number => analyses.reduce((sum, analysis) => sum + of(analysis), 0);

function averageOf(row: Row): number | null {
  const functions = sumOf(row, ({ summary }) => summary.total_funcs);
  return functions ? sumOf(row, ({ summary }) => summary.combined) / functions : null;
}

const COLUMNS: readonly Column<Row>[] = [
  { id: "status", title: "Status", width: "128px", by: ({ repo }) => repo.Status, cell: ({ repo }) => <Pill state={repo.Status} />, phone: "first" },
  {
    id: "name",
    title: "Repository",
    by: ({ repo }) => repo.URL,
    cell: ({ repo }) => (
      <Link to={withQuery({}, `/repos/${repo.ID}`)} data-row title={repo.URL} class="name">
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
    cell: ({ repo }) => (repo.Status === "error" ? <span title={repo.StatusReason}>{repo.StatusReason}</span> : <code>{`${repo.DefaultRef} ${shortCommit(repo.CommitSHA)}`}</code>),
  },
  {
    id: "functions",
    title: "Functions",
    width: "92px",
    align: "right",
    by: (row) => sumOf(row, ({ summary }) => summary.total_funcs),
    cell: (row) => (row.analyses.length ? count(sumOf(row, ({ summary }) => summary.total_funcs)) : ""),
    phone: "hidden",
  },
  {
    id: "exceeded",
    title: "Over",
    width: "68px",
    align: "right",
    by: (row) => sumOf(row, ({ summary }) => summary.exceeded),
    cell: (row) => (row.analyses.length ? count(sumOf(row, ({ summary }) => summary.exceeded)) : ""),
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
      return average === null ? "" : score(average);
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

export default function Repositories({ params }: ScreenProps) {
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
  const open = params["id"];
  const opened = repos.find((repo) => repo.ID === open);
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
            open={open ?? null}
          />
        )}
      </section>
      {open && read && <RepoDrawer key={open} repo={opened ?? null} analyses={analyses.filter((each) => each.repo_id === open)} close={() => go(withQuery({ project: null }, "/repos"))} />}
    </div>
  );
}

/** The form for a new repository: what is wrong is said before it is sent. */
function Register({ input }: { input: { current: HTMLInputElement | null } }) {
  const [text, setText] = useState("");
  const [left, setLeft] = useState(false);
  const [refused, setRefused] = useState("");
  const [busy, setBusy] = useState(false);
  const problem = problemOf(text);
  const shown = refused || (left || busy ? (problem ?? "") : "");
  const submit = async (event: SubmitEvent) => {
    event.preventDefault();
    setLeft(true);
    if (!text.trim() || problem) return;
    setBusy(true);
    try {
      const { body: repo } = await ask<Repo>("POST", "/api/repos", { body: { repo_url: text.trim() } });
      say(repo.Status === "registering" ? `${repoName(repo.URL)} is registered: a worker looks for its Go projects.` : `${repoName(repo.URL)} is known already.`);
      setText("");
      setLeft(false);
      outdated(0);
      go(`/repos/${repo.ID}`);
    } catch (error) {
      setRefused(error instanceof Problem && error.fields[0] ? `The address ${error.fields[0].detail}.` : textOf(error));
    } finally {
      setBusy(false);
    }
  };
  return (
    <form class="register panel" onSubmit={(event) => void submit(event)} noValidate>
      <label for="address">Register a repository</label>
      <div class="toolbar">
        <input
          ref={input}
          id="address"
          type="text"
          inputMode="url"
          autocomplete="off"
          autocapitalize="none"
          spellcheck={false}
          placeholder="https://github.com/owner/name"
          value={text}
          aria-invalid={shown ? "true" : "false"}
          aria-describedby="address-note"
          onInput={(event) => {
            setText(event.currentTarget.value);
            setRefused("");
          }}
          onBlur={() => setLeft(true)}
        />
        <button type="submit" class="primary" disabled={busy}>
          Register
        </button>
      </div>
      <p id="address-note" class={shown ? "bad" : "muted"} role="status">
        {shown || (text && !problem ? `Will be known as ${canonical(text)}` : "A worker clones it and looks for its Go modules.")}
      </p>
    </form>
  );
}

interface Update {
  moved: boolean;
  scheduled: boolean;
  error: string | null;
}

const LONG = 160_000;

/** Looks up where all refs lead to now, and has analysed what has moved. */
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
      const failed = found.filter(({ error }) => error).length;
      say(
        `${count(found.length)} projects checked: ${count(found.filter(({ moved }) => moved).length)} moved, ${count(found.filter(({ scheduled }) => scheduled).length)} queued` +
          (failed ? `, ${count(failed)} could not be looked up.` : "."),
      );
    } catch (error) {
      complain(textOf(error));
    } finally {
      setBusy(false);
    }
  };
  return (
    <button type="button" disabled={busy} onClick={() => void check()} title="Look up where refs lead to, and analyse what has moved">
      {busy ? "Checking…" : "Analyse what moved"}
    </button>
  );
}
