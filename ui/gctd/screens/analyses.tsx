// The latest analysis of each project; one that is open has the page.

import { useMemo } from "preact/hooks";
import { readPages } from "../../kit/http";
import { useLoad } from "../../kit/load";
import { Link, useQuery } from "../../kit/router";
import { Command, Empty, ErrorPanel, Skeleton } from "../../kit/states";
import { type Column, parseSort, sorted, sortText, Table } from "../../kit/table";
import { Ago } from "../../kit/time";
import { count, projectName, score, shortCommit } from "../names";
import type { ScreenProps } from "../routes";
import type { Analysis } from "../types";
import AnalysisScreen from "./analysis";

const COLUMNS: readonly Column<Analysis>[] = [
  {
    id: "project",
    title: "Project",
    by: (one) => projectName(one.repo_info.url, one.project),
    cell: (one) => (
      <Link to={`/analyses/${one.id}`} data-row class="name" title={one.repo_info.url}>
        {projectName(one.repo_info.url, one.project)}
      </Link>
    ),
    phone: "first",
  },
  { id: "average", title: "Average", width: "92px", align: "right", by: (one) => one.summary.average, cell: (one) => score(one.summary.average), phone: "first" },
  { id: "exceeded", title: "Risky", width: "84px", align: "right", by: (one) => one.summary.exceeded, cell: (one) => count(one.summary.exceeded), phone: "hidden" },
  { id: "functions", title: "Functions", width: "104px", align: "right", by: (one) => one.summary.total_funcs, cell: (one) => count(one.summary.total_funcs), phone: "hidden" },
  { id: "total", title: "Total", width: "96px", align: "right", by: (one) => one.summary.combined, cell: (one) => count(Math.round(one.summary.combined)), phone: "hidden" },
  {
    id: "uncovered",
    title: "Not covered",
    width: "120px",
    align: "right",
    by: (one) => one.uncovered.length,
    cell: (one) => <span title="packages without coverage">{one.uncovered.length ? count(one.uncovered.length) : ""}</span>,
    phone: "hidden",
  },
  { id: "commit", title: "Commit", width: "124px", cell: (one) => <code>{shortCommit(one.repo_info.commit_sha)}</code>, phone: "second" },
  { id: "age", title: "Age", width: "76px", align: "right", by: (one) => -Date.parse(one.analyzed_at), cell: (one) => <Ago at={one.analyzed_at} />, phone: "second" },
];

export default function Analyses(props: ScreenProps) {
  return props.params["id"] ? <AnalysisScreen key={props.params["id"]} {...props} /> : <List />;
}

function List() {
  const [filter, setFilter] = useQuery("q");
  const [sortQuery, setSort] = useQuery("sort");
  const { value, error, reload } = useLoad(async (signal) => {
    const found: Analysis[] = [];
    await readPages<Analysis>("/api/repos?limit=1000", (page) => void found.push(...page), { signal });
    return found;
  }, []);
  const sort = parseSort(sortQuery);
  const rows = useMemo(() => {
    const words = filter.toLowerCase().split(/\s+/).filter(Boolean);
    const fits = (one: Analysis) => words.every((word) => `${one.repo_info.url} ${one.project}`.toLowerCase().includes(word));
    return sorted((value ?? []).filter(fits), COLUMNS, sort);
  }, [value, filter, sortQuery]);
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
        {error && !value ? <ErrorPanel error={error} retry={reload} /> : null}
        {!value && !error && <Skeleton lines={8} />}
        {value?.length === 0 && (
          <Empty title="Nothing is analysed yet">
            <Command text="gctd repo analyze https://github.com/owner/name" />
          </Empty>
        )}
        {value && value.length > 0 && rows.length === 0 && <Empty title={`No project matches ${filter}`} />}
        {rows.length > 0 && <Table label="Analyses" rows={rows} keyOf={(one) => one.id} columns={COLUMNS} sort={sort} onSort={(next) => setSort(sortText(next))} />}
      </section>
    </div>
  );
}
