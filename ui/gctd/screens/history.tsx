// How the scores of a project changed from analysis to analysis, and which functions between any two.

import { useMemo } from "preact/hooks";
import { Chart, type Series } from "../../kit/charts/chart";
import { Crumbs } from "../../kit/page/crumbs";
import { read, readPages } from "../../kit/data/http";
import { useLoad } from "../../kit/data/load";
import { Pill } from "../../kit/parts/pill";
import { go, Link, useQuery, withQuery } from "../../kit/page/router";
import { Empty, ErrorPanel, Skeleton } from "../../kit/parts/states";
import { type Column, parseSort, sorted, sortText, Table } from "../../kit/parts/table";
import { utc } from "../../kit/parts/time";
import { useTitle } from "../../kit/page/title";
import { Name, Place } from "../analysis/functions";
import { brokenText, isMissing, sourceOf } from "../analysis/risk";
import type { Change, Diff, Whole } from "../analysis/types";
import { count, plural, projectName, repoName, score, shortCommit } from "../data/names";
import { analysisAt, repoAt } from "../data/places";
import { riskyOf } from "../data/risky";
import type { ScreenProps } from "../routes";
import type { HistoryEntry } from "../data/types";
import "../analysis/analysis.css";

const METRICS = {
  average: "Average CRAP",
  exceeded: "Risky functions",
  combined: "Total CRAP",
  total_funcs: "Functions",
} as const;
type Metric = keyof typeof METRICS;

export default function History({ params }: ScreenProps) {
  const id = params["id"] ?? "";
  const [chosenFrom] = useQuery("from");
  const [chosenTo] = useQuery("to");
  const { value, error, reload } = useLoad(
    async (signal) => {
      const history: HistoryEntry[] = [];
      const [latest] = await Promise.all([
        read<Whole>(`/api/repos/${encodeURIComponent(id)}?entries=0`, signal),
        readPages<HistoryEntry>(`/api/repos/${encodeURIComponent(id)}/history?limit=1000`, (page) => void history.push(...page), { signal }),
      ]);
      return { latest, history };
    },
    [id],
  );
  const name = value ? projectName(value.latest.repo_info.url, value.latest.project) : "";
  useTitle(name && `History of ${name}${chosenFrom || chosenTo ? `, ${chosenFrom || "…"} to ${chosenTo || "the latest"}` : ""}`, 1);
  if (error && !value) {
    return (
      <div class="page">
        <h1>History</h1>
        {isMissing(error) ? <Empty title="There is no such analysis" /> : <ErrorPanel error={error} retry={reload} />}
      </div>
    );
  }
  if (!value) return <Skeleton lines={8} />;
  const { latest, history } = value;
  // what is not chosen is the latest analysis, and the one before the other
  const to = chosenTo || (history[0]?.task_id ?? "");
  const from = chosenFrom || (history[history.findIndex((entry) => entry.task_id === to) + 1]?.task_id ?? "");
  return (
    <div class="page">
      <Crumbs
        above={[
          { name: "Repositories", to: "/repos" },
          { name: repoName(latest.repo_info.url), to: repoAt(latest.repo_id) },
          { name: latest.project === "." ? "latest analysis" : latest.project, to: analysisAt(id) },
        ]}
        here="History"
      />
      <header class="page-head">
        <h1>{name}: history</h1>
      </header>
      <Trend id={id} history={history} />
      <Choices id={id} history={history} from={from} to={to} />
      {history.length < 2 ? <p class="muted">There is nothing yet to compare this analysis with.</p> : null}
      {from && to ? <Comparison id={id} latest={latest} from={from} to={to} /> : history.length > 1 && <Empty title="There is no analysis before that one" />}
    </div>
  );
}

function Trend({ id, history }: { id: string; history: readonly HistoryEntry[] }) {
  const [chosen, choose] = useQuery("metric");
  const [by, setBy] = useQuery("by");
  const metric: Metric = chosen in METRICS ? (chosen as Metric) : "average";
  const points = useMemo(() => [...history].reverse(), [history]);
  const along = useMemo(
    () => (by === "time" ? { at: points.map((entry) => Date.parse(entry.analyzed_at) / 1000) } : { steps: points.map((entry) => entry.commit_sha.slice(0, 7)) }),
    [points, by],
  );
  const series = useMemo(() => stretchesOf(points, metric), [points, metric]);
  const breaks = useMemo(() => points.flatMap((entry, index) => (entry.break.length > 0 ? [index] : [])), [points]);
  const [first, last] = [points[0], points.at(-1)];
  const text = (entry: HistoryEntry | undefined) => (entry ? shownAs(metric, valueOf(entry, metric)) : "–");
  const said =
    points.length === 1
      ? `${METRICS[metric]}: one analysis, ${text(last)}.`
      : `${METRICS[metric]} over ${plural(points.length, "analysis", "analyses")}, from ${text(first)} to ${text(last)}${breaks.length ? `, measured differently from ${count(breaks.length)} of them on` : ""}.`;
  const nameOf = (index: number) => {
    const entry = points[index];
    return entry ? `${shortCommit(entry.commit_sha)}, ${utc(entry.analyzed_at).slice(0, 16)} UTC` : "";
  };
  return (
    <section class="panel" aria-label="Trend">
      <header>
        <h2>Trend</h2>
        <div class="line no-print" role="group" aria-label="Figure of the chart">
          {(Object.keys(METRICS) as Metric[]).map((name) => (
            <button key={name} type="button" class="small" aria-pressed={name === metric} onClick={() => choose(name === "average" ? "" : name)}>
              {METRICS[name]}
            </button>
          ))}
          <button type="button" class="small" aria-pressed={by === "time"} onClick={() => setBy(by === "time" ? "" : "time")}>
            By time
          </button>
        </div>
      </header>
      <Chart
        key={`${metric} ${by}`}
        label={said}
        along={along}
        nameOf={nameOf}
        pointName="Analysis"
        series={series}
        height={220}
        breaks={breaks}
        note={by === "time" ? "times in UTC" : "by analysis, the oldest first; times in UTC"}
        onPick={(index) => go(analysisAt(id, points[index]?.task_id))}
      />
      {points.length === 1 && <p class="muted">One analysis so far: a line begins with the second.</p>}
      {breaks.length > 0 && (
        <p class="muted">
          The line is broken where analyses were measured differently ({[...new Set(points.flatMap((entry) => entry.break.map(({ what }) => what)))].join(", ")}): a
          difference there need not come from the code.
        </p>
      )}
    </section>
  );
}

const valueOf = (entry: HistoryEntry, metric: Metric): number => (metric === "exceeded" ? riskyOf(entry) : entry.summary[metric]);

const shownAs = (metric: Metric, value: number): string => (metric === "exceeded" || metric === "total_funcs" ? count(value) : score(value));

/** A line for each stretch that was measured in one way, so that none leads over a break. */
function stretchesOf(points: readonly HistoryEntry[], metric: Metric): Series[] {
  const starts = points.flatMap((entry, index) => (index === 0 || entry.break.length > 0 ? [index] : []));
  const seen = new Map<string, number>();
  return starts.map((start, number) => {
    const end = starts[number + 1] ?? points.length;
    const made = `${points[start]?.go_version}, ${points[start]?.engine} ${points[start]?.engine_version}`;
    const times = (seen.get(made) ?? 0) + 1;
    seen.set(made, times);
    return {
      label: starts.length === 1 ? METRICS[metric] : times === 1 ? made : `${made} (${times})`,
      colour: number % 2 ? "expired" : "accent",
      values: points.map((entry, index) => (index >= start && index < end ? valueOf(entry, metric) : null)),
      fill: true,
      dashed: number % 2 === 1,
      show: (value) => shownAs(metric, value),
    };
  });
}

function Choices({ id, history, from, to }: { id: string; history: readonly HistoryEntry[]; from: string; to: string }) {
  const choice = (entry: HistoryEntry, name: "from" | "to", chosen: string) => (
    <button
      type="button"
      class="small"
      aria-pressed={entry.task_id === chosen}
      aria-label={`Compare ${name} ${utc(entry.analyzed_at)}`}
      onClick={() => go(withQuery({ [name]: entry.task_id }), { replace: true })}
    >
      {name}
    </button>
  );
  const columns: readonly Column<HistoryEntry>[] = [
    {
      id: "at",
      title: "Analysed (UTC)",
      width: "160px",
      cell: (entry) => (
        <Link to={analysisAt(id, entry.task_id)} data-row class="name" title={entry.task_id}>
          {utc(entry.analyzed_at).slice(0, 16)}
        </Link>
      ),
      phone: "first",
    },
    {
      id: "choose",
      title: "Compare",
      width: "120px",
      cell: (entry) => (
        <>
          {choice(entry, "from", from)} {choice(entry, "to", to)}
        </>
      ),
      phone: "first",
    },
    { id: "commit", title: "Commit", width: "124px", cell: (entry) => <code>{shortCommit(entry.commit_sha)}</code>, phone: "second" },
    { id: "average", title: "Average", width: "88px", align: "right", cell: (entry) => score(entry.summary.average), phone: "second" },
    { id: "exceeded", title: "Risky", width: "72px", align: "right", cell: (entry) => count(riskyOf(entry)), phone: "hidden" },
    { id: "functions", title: "Functions", width: "92px", align: "right", cell: (entry) => count(entry.summary.total_funcs), phone: "hidden" },
    { id: "break", title: "Measured differently", cell: (entry) => <span title={brokenText(entry.break)}>{brokenText(entry.break)}</span>, phone: "hidden" },
  ];
  return (
    <section class="list history" aria-label="Analyses">
      <Table label="Analyses of the project" rows={history} keyOf={(entry) => entry.task_id} columns={columns} />
    </section>
  );
}

const STATUSES = ["new", "worse", "fixed", "better", "gone", "unmeasured", "measured"] as const;
/** States that are shown only if there are such functions. */
const RARE: readonly Change["status"][] = ["unmeasured", "measured"];
const TONES: Record<Change["status"], string> = { new: "queued", worse: "failed", fixed: "completed", better: "completed", gone: "pending", unmeasured: "expired", measured: "queued" };

function Comparison({ id, latest, from, to }: { id: string; latest: Whole; from: string; to: string }) {
  const [status, setStatus] = useQuery("status");
  const [sortQuery, setSort] = useQuery("sort");
  const query = new URLSearchParams({ limit: "1000000", from, to });
  const { value, error, reload } = useLoad((signal) => read<Diff>(`/api/repos/${encodeURIComponent(id)}/diff?${query}`, signal), [id, from, to]);
  const sort = parseSort(sortQuery);
  const columns = useMemo(() => changeColumns(latest, value ?? null), [latest, value]);
  const rows = useMemo(
    () => sorted((value?.functions ?? []).filter((change) => !status || change.status === status), columns, sort),
    [value, status, sortQuery, columns],
  );
  if (error && !value) return <ErrorPanel error={error} retry={reload} />;
  if (!value) return <Skeleton />;
  return (
    <section class="list compare" aria-label="Comparison">
      <div class="page-head">
        <h2>
          <code>{shortCommit(value.from.commit_sha)}</code> → <code>{shortCommit(value.to.commit_sha)}</code>
        </h2>
        <div class="line" role="group" aria-label="Which functions">
          <button type="button" class="small" aria-pressed={status === ""} onClick={() => setStatus("")}>
            all {count(value.functions.length)}
          </button>
          {STATUSES.filter((name) => value.counts[name] || !RARE.includes(name)).map((name) => (
            <button key={name} type="button" class="small" aria-pressed={status === name} onClick={() => setStatus(status === name ? "" : name)}>
              {name} {count(value.counts[name] ?? 0)}
            </button>
          ))}
          <span class="muted">{count(value.counts.unchanged ?? 0)} unchanged</span>
        </div>
      </div>
      {value.break.length > 0 && <p class="muted">Measured differently: {brokenText(value.break)}.</p>}
      {value.partial && <p class="muted">A report was shortened (--min, --top): a function that is new or gone here may only be left out of one report.</p>}
      {rows.length === 0 ? (
        <Empty title={value.functions.length === 0 ? "No function changed" : `No function is ${status}`} />
      ) : (
        <Table
          label="Functions that changed"
          rows={rows}
          keyOf={(change) => `${change.status} ${change.file}:${change.line}:${change.function}`}
          columns={columns}
          sort={sort}
          onSort={(next) => setSort(sortText(next))}
        />
      )}
    </section>
  );
}

function changeColumns(latest: Whole, diff: Diff | null): readonly Column<Change>[] {
  // the address of a file at another commit differs in that only
  const source = diff && latest.source ? latest.source.replace(latest.repo_info.commit_sha, diff.to.commit_sha) : null;
  const crap = (value: Change["before"]) => (value ? score(value.crap) : "");
  return [
    { id: "status", title: "Became", width: "108px", by: (change) => STATUSES.indexOf(change.status), cell: (change) => <Pill state={TONES[change.status]} word={change.status} />, phone: "first" },
    {
      id: "function",
      title: "Function",
      by: (change) => change.function,
      cell: (change) => <Name name={change.function} address={change.after ? sourceOf(source, change.after.file, change.after.line) : null} />,
      phone: "first",
    },
    { id: "before", title: "Before", width: "88px", align: "right", by: (change) => change.before?.crap ?? -1, cell: (change) => crap(change.before), phone: "second" },
    { id: "after", title: "Now", width: "88px", align: "right", by: (change) => change.after?.crap ?? -1, cell: (change) => crap(change.after), phone: "second" },
    { id: "delta", title: "Change", width: "96px", align: "right", by: (change) => change.delta, cell: (change) => `${change.delta > 0 ? "+" : ""}${score(change.delta)}`, phone: "second" },
    { id: "place", title: "Place", by: (change) => `${change.file} ${String(change.line).padStart(7, "0")}`, cell: (change) => <Place file={change.file} line={change.line} />, phone: "hidden" },
  ];
}
