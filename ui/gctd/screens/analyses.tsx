// The latest analysis of each project.

import { useMemo } from "preact/hooks";
import { Link, useQuery } from "../../kit/page/router";
import { Command, Empty, ErrorPanel, Skeleton } from "../../kit/parts/states";
import { type Column, parseSort, sorted, sortText, Table } from "../../kit/parts/table";
import { Ago } from "../../kit/parts/time";
import { count, projectName, score, shortCommit } from "../data/names";
import { analysisAt } from "../data/places";
import { outdated, useRepos } from "../data/repos";
import type { Analysis } from "../data/types";

const COLUMNS: readonly Column<Analysis>[] = [
  {
    id: "project",
    title: "Project",
    by: (one) => projectName(one.repo_info.url, one.project),
    cell: (one) => (
      <Link to={analysisAt(one.id)} data-row class="name" title={one.repo_info.url}>
        {projectName(one.repo_info.url, one.project)}
      </Link>
    ),
    phone: "first",
  },
  { id: "average", title: "Average", width: "92px", align: "right", by: (one) => one.measured.average, cell: (one) => score(one.measured.average), phone: "first" },
  { id: "exceeded", title: "Risky", width: "84px", align: "right", by: (one) => one.measured.exceeded, cell: (one) => <Link to={`${analysisAt(one.id)}?only=risky`}>{count(one.measured.exceeded)}</Link>, phone: "hidden" },
  { id: "functions", title: "Functions", width: "104px", align: "right", by: (one) => one.measured.total_funcs, cell: (one) => count(one.measured.total_funcs), phone: "hidden" },
  { id: "total", title: "Total", width: "96px", align: "right", by: (one) => one.measured.combined, cell: (one) => count(Math.round(one.measured.combined)), phone: "hidden" },
  {
    id: "uncovered",
    title: "Without coverage",
    width: "136px",
    align: "right",
    by: (one) => one.uncovered.length,
    cell: (one) => <span title="packages without coverage">{one.uncovered.length ? count(one.uncovered.length) : ""}</span>,
    phone: "hidden",
  },
  { id: "commit", title: "Commit", width: "124px", cell: (one) => <code>{shortCommit(one.repo_info.commit_sha)}</code>, phone: "second" },
  { id: "age", title: "Age", width: "76px", align: "right", by: (one) => -Date.parse(one.analyzed_at), cell: (one) => <Ago at={one.analyzed_at} />, phone: "second" },
];

export default function Analyses() {
  const [filter, setFilter] = useQuery("q");
  const [sortQuery, setSort] = useQuery("sort");
  const { analyses, read, error } = useRepos();
  const sort = parseSort(sortQuery);
  const rows = useMemo(() => {
    const words = filter.toLowerCase().split(/\s+/).filter(Boolean);
    const fits = (one: Analysis) => words.every((word) => `${one.repo_info.url} ${one.project}`.toLowerCase().includes(word));
    return sorted(analyses.filter(fits), COLUMNS, sort);
  }, [analyses, filter, sortQuery]);
  return (
    <div class="page full">
      <section class="list" aria-label="Analyses">
        <div class="toolbar">
          <h1>Analyses</h1>
          <input
            type="search"
            aria-label="Filter analyses"
            placeholder="filter: words of repository or project"
            value={filter}
            spellcheck={false}
            autocomplete="off"
            onInput={(event) => setFilter(event.currentTarget.value, { replace: true })}
          />
        </div>
        {error ? <ErrorPanel error={error} retry={() => outdated(0)} /> : null}
        {!read && !error && <Skeleton lines={8} />}
        {read && analyses.length === 0 && (
          <Empty title="No repository is analysed yet">
            <Command text="gctd repo analyze https://github.com/owner/name" />
          </Empty>
        )}
        {analyses.length > 0 && rows.length === 0 && <Empty title={`No project matches ${filter}`} />}
        {rows.length > 0 && <Table label="Analyses" rows={rows} keyOf={(one) => one.id} columns={COLUMNS} sort={sort} onSort={(next) => setSort(sortText(next))} />}
      </section>
    </div>
  );
}
