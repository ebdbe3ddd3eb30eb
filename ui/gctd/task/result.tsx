// The result of a completed task: its figures and its worst functions.

import { Problem, read } from "../../kit/data/http";
import { useLoad } from "../../kit/data/load";
import { Link } from "../../kit/page/router";
import { ErrorPanel, Skeleton } from "../../kit/parts/states";
import { plural, score, shortCommit } from "../data/names";
import { functionAt } from "../data/places";
import { coveredText, scoreText } from "../data/risky";
import type { Analysis, Task } from "../data/types";

const WORST = 10;

export function Result({ task }: { task: Task }) {
  const { value, error, reload } = useLoad((signal) => read<Analysis>(`/api/tasks/${task.id}/result?entries=${WORST}`, signal), [task.id]);
  if (error) return error instanceof Problem && error.status === 404 ? null : <ErrorPanel error={error} retry={reload} />;
  if (!value) return <Skeleton />;
  const figures = value.measured;
  return (
    <section aria-labelledby="result-title">
      <h3 id="result-title">Analysis</h3>
      <p>
        Average CRAP <strong>{score(figures.average)}</strong>, {value.measured.exceeded} of {plural(figures.total_funcs, "function")} risky
      </p>
      <p class="muted">
        {shortCommit(value.repo_info.commit_sha)}, {value.go_version}, {value.engine} {value.engine_version}, sandbox {value.sandbox || "not known"}
      </p>
      {(value.entries ?? []).length > 0 && (
        <table class="plain">
          <caption>Worst functions</caption>
          <thead>
            <tr>
              <th scope="col" class="right">
                CRAP
              </th>
              <th scope="col" class="right">
                Complexity
              </th>
              <th scope="col" class="right">
                Coverage
              </th>
              <th scope="col">Function</th>
            </tr>
          </thead>
          <tbody>
            {(value.entries ?? []).map((entry) => (
              <tr key={`${entry.file} ${entry.line}`}>
                <td class="right">{scoreText(entry)}</td>
                <td class="right">{entry.cyclomatic}</td>
                <td class="right">{coveredText(entry)}</td>
                <td>
                  <Link to={functionAt(value.id, entry.key, task.id)} title={`${entry.file}:${entry.line}`}>
                    <code>{entry.function}</code>
                  </Link>
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
      {value.uncovered.length > 0 && (
        <>
          <h4>Packages without coverage</h4>
          <ul class="plain-list">
            {value.uncovered.map((each) => (
              <li key={each.path}>
                <code>{each.path}</code> <span class="muted">{each.reason}</span>
              </li>
            ))}
          </ul>
        </>
      )}
    </section>
  );
}
