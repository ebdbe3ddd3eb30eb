// The values of a function over the analysed commits, and the last change of its code.

import { useMemo } from "preact/hooks";
import { Chart } from "../../kit/charts/chart";
import type { Series } from "../../kit/charts/series";
import { read } from "../../kit/data/http";
import { useLoad } from "../../kit/data/load";
import { go, Link } from "../../kit/page/router";
import { ErrorPanel, Skeleton } from "../../kit/parts/states";
import { utc } from "../../kit/parts/time";
import { score, shortCommit } from "../data/names";
import { functionAt } from "../data/places";
import { isMeasured, scoreText } from "../data/risky";
import type { FunctionHistory, Point, Shown } from "./types";

const WORDS = { added: "added", code: "code changed", moved: "moved or renamed", coverage: "other coverage" } as const;

export function HistoryPanel({ shown }: { shown: Shown }) {
  const { id, key, task_id: task } = shown;
  const path = `/api/repos/${id}/functions/${encodeURIComponent(key)}/history?at=${task}`;
  const { value, error, reload } = useLoad((signal) => read<FunctionHistory>(path, signal), [path]);
  return (
    <section class="panel" aria-label="History">
      <header>
        <h2>History</h2>
        <span class="muted">on {shown.ref}</span>
      </header>
      {error && !value ? <ErrorPanel error={error} retry={reload} /> : value ? <Values id={id} threshold={shown.threshold} history={value} /> : <Skeleton lines={6} />}
    </section>
  );
}

function Values({ id, threshold, history }: { id: string; threshold: number; history: FunctionHistory }) {
  const points = useMemo(() => [...history.points].reverse(), [history]);
  const along = useMemo(() => ({ steps: points.map(({ commit_sha: commit }) => commit.slice(0, 7)) }), [points]);
  const series = useMemo(
    (): Series[] => [
      { label: "CRAP value", colour: "accent", values: points.map((point) => (isMeasured(point) ? point.crap : null)), fill: true, show: score },
      { label: `threshold ${threshold}`, colour: "failed", values: points.map(() => threshold), dashed: true, show: String },
    ],
    [points, threshold],
  );
  const [first, last] = [points[0], points.at(-1)];
  const at = (index: number) => functionAt(id, points[index]?.key ?? "", points[index]?.task_id);
  return (
    <>
      <LastChange change={history.last_change} />
      {points.length > 1 && (
        <Chart
          label={`CRAP value over ${points.length} commits, from ${textOf(first)} to ${textOf(last)}.`}
          along={along}
          nameOf={(index) => `${shortCommit(points[index]?.commit_sha ?? "")}, ${utc(points[index]?.analyzed_at ?? "").slice(0, 16)} UTC`}
          pointName="Commit"
          series={series}
          height={150}
          note="by analysed commit, the oldest first"
          onPick={(index) => go(at(index))}
        />
      )}
      <div class="history-rows">
        <table class="plain">
          <caption>Analysed commits, the newest first{history.cut ? " (older ones are not shown)" : ""}</caption>
          <thead>
            <tr>
              <th scope="col">Commit</th>
              <th scope="col" class="right">
                CRAP
              </th>
              <th scope="col">Change</th>
            </tr>
          </thead>
          <tbody>
            {history.points.map((point) => (
              <tr key={point.task_id}>
                <th scope="row">
                  <Link to={functionAt(id, point.key, point.task_id)} title={`${utc(point.analyzed_at)}, ${point.file}:${point.line}`}>
                    <code>{shortCommit(point.commit_sha)}</code>
                  </Link>
                </th>
                <td class="right">{textOf(point)}</td>
                <td>{point.changes === null ? "oldest known" : point.changes.map((change) => WORDS[change]).join(", ") || "none"}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </>
  );
}

const textOf = (point: Point | undefined): string => (point ? scoreText(point) : "–");

function LastChange({ change }: { change: FunctionHistory["last_change"] }) {
  const what = change.added ? "It was added" : "Its code was last changed";
  const [before, after] = [<code>{shortCommit(change.before)}</code>, <code>{shortCommit(change.after)}</code>];
  switch (change.kind) {
    case "commit":
      return (
        <p>
          {what} by <strong>{change.commit?.author}</strong> on {change.commit?.at.slice(0, 10)} in {after}: {change.commit?.subject}
        </p>
      );
    case "between":
      return (
        <p>
          {what} after {before} and not later than {after}. Commits between them may not be analysed, so that its author is not known.
        </p>
      );
    case "unchanged":
      return <p>Its code is unchanged since {before} at least, the oldest analysed commit.</p>;
    default:
      return <p>It is not known when its code changed: an analysis does not have its content.</p>;
  }
}
