// How the scores of a project changed from analysis to analysis.

import { useEffect, useMemo } from "preact/hooks";
import { Chart } from "../../kit/charts/chart";
import type { Series } from "../../kit/charts/series";
import { Crumbs } from "../../kit/page/crumbs";
import { read, readPages } from "../../kit/data/http";
import { useLoad } from "../../kit/data/load";
import { go, Link, useQuery } from "../../kit/page/router";
import { Empty, ErrorPanel, Skeleton } from "../../kit/parts/states";
import { type Column, Table } from "../../kit/parts/table";
import { utc } from "../../kit/parts/time";
import { useTitle } from "../../kit/page/title";
import { Newer } from "../analysis/newer";
import { brokenText, isMissing } from "../analysis/risk";
import type { Whole } from "../analysis/types";
import { count, plural, projectName, repoName, score, shortCommit } from "../data/names";
import { analysisAt, comparisonAt, repoAt } from "../data/places";
import type { ScreenProps } from "../screen";
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
  const [from] = useQuery("from");
  const [to] = useQuery("to");
  const [chosen, choose] = useQuery("ref");
  // the comparison was once a part of this page
  useEffect(() => {
    if (from || to) go(comparisonAt(id, from, to), { replace: true });
  }, [from, to]);
  const { value, error, reload } = useLoad(
    async (signal) => {
      const history: HistoryEntry[] = [];
      const trend: HistoryEntry[] = [];
      const page = (entries: HistoryEntry[]) => void trend.push(...entries);
      const path = `/api/repos/${encodeURIComponent(id)}`;
      await readPages<HistoryEntry>(`${path}/history?limit=1000`, (entries) => void history.push(...entries), { signal });
      // without an analysis of the tracked ref there is no latest one
      const shown = await read<Whole>(`${path}?entries=0`, signal).catch((error: unknown) => {
        if (!isMissing(error) || !history[0]) throw error;
        return read<Whole>(`${path}?at=${history[0].task_id}&entries=0`, signal);
      });
      const ref = chosen || shown.repo_info.ref;
      // one whose analyses all served only for comparisons has no trend
      await readPages<HistoryEntry>(`${path}/history?ref=${encodeURIComponent(ref)}&limit=1000`, page, { signal }).catch((error: unknown) => {
        if (!isMissing(error)) throw error;
      });
      return { shown, history, trend, ref };
    },
    [id, chosen],
  );
  const name = value ? projectName(value.shown.repo_info.url, value.shown.project) : "";
  useTitle(name && `History of ${name}`, 1);
  if (error && !value) {
    return (
      <div class="page">
        <h1>History</h1>
        {isMissing(error) ? <Empty title="There is no such analysis" /> : <ErrorPanel error={error} retry={reload} />}
      </div>
    );
  }
  if (!value) return <Skeleton lines={8} />;
  const { shown, history, trend, ref } = value;
  return (
    <div class="page">
      <Crumbs
        above={[
          { name: "Repositories", to: "/repos" },
          { name: repoName(shown.repo_info.url), to: repoAt(shown.repo_id) },
          { name: shown.project === "." ? "latest analysis" : shown.project, to: analysisAt(id) },
        ]}
        here="History"
      />
      <header class="page-head">
        <h1>{name}: history</h1>
        {trend.length > 1 && (
          <p class="no-print">
            <Link to={comparisonAt(id, trend[1]?.task_id ?? "", trend[0]?.task_id ?? "")}>Compare two analyses</Link>
          </p>
        )}
      </header>
      <Newer id={id} known={history.map((entry) => entry.task_id)} reload={reload} />
      <Refs history={history} ref_={ref} choose={choose} />
      {trend.length > 0 ? <Trend id={id} history={trend} /> : <p class="muted">No analysis of {ref} has a place in a trend.</p>}
      <Analyses id={id} history={history} />
      {history.length < 2 ? <p class="muted">There is nothing yet to compare this analysis with.</p> : null}
    </div>
  );
}

/** The choice of the ref whose trend is shown. */
function Refs({ history, ref_: ref, choose }: { history: readonly HistoryEntry[]; ref_: string; choose: (ref: string) => void }) {
  const refs = [...new Set([ref, ...history.map((entry) => entry.ref)])];
  if (refs.length < 2) return null;
  return (
    <p class="line no-print">
      <label class="line">
        Trend of
        <select value={ref} onChange={(event) => choose(event.currentTarget.value)}>
          {refs.map((name) => (
            <option key={name} value={name}>
              {name}
            </option>
          ))}
        </select>
      </label>
    </p>
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

const valueOf = (entry: HistoryEntry, metric: Metric): number => entry.measured[metric];

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

function Analyses({ id, history }: { id: string; history: readonly HistoryEntry[] }) {
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
    { id: "commit", title: "Commit", width: "124px", cell: (entry) => <code>{shortCommit(entry.commit_sha)}</code>, phone: "second" },
    { id: "ref", title: "Ref", width: "140px", cell: (entry) => <code title={entry.ref}>{entry.ref}</code>, phone: "hidden" },
    { id: "average", title: "Average", width: "88px", align: "right", cell: (entry) => score(entry.measured.average), phone: "second" },
    {
      id: "exceeded",
      title: "Risky",
      width: "72px",
      align: "right",
      cell: (entry) => <Link to={`${analysisAt(id, entry.task_id)}&only=risky`}>{count(entry.measured.exceeded)}</Link>,
      phone: "hidden",
    },
    { id: "functions", title: "Functions", width: "92px", align: "right", cell: (entry) => count(entry.measured.total_funcs), phone: "hidden" },
    {
      id: "changes",
      title: "Changes",
      width: "160px",
      cell: (entry) => {
        const before = history.slice(history.indexOf(entry) + 1).find(({ ref }) => ref === entry.ref);
        return before ? (
          <Link to={comparisonAt(id, before.task_id, entry.task_id)}>since {shortCommit(before.commit_sha)}</Link>
        ) : null;
      },
      phone: "first",
    },
    { id: "break", title: "Measured differently", cell: (entry) => <span title={brokenText(entry.break)}>{brokenText(entry.break)}</span>, phone: "hidden" },
  ];
  return (
    <section class="list history" aria-label="Analyses">
      <Table label="Analyses of the project" rows={history} keyOf={(entry) => entry.task_id} columns={columns} />
    </section>
  );
}
