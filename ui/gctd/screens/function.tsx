// One function of an analysis: its source with covered and uncovered code, the tests that help, its value over commits.

import { useRef } from "preact/hooks";
import { Crumbs } from "../../kit/page/crumbs";
import { read } from "../../kit/data/http";
import { useLoad } from "../../kit/data/load";
import { Link, useQuery } from "../../kit/page/router";
import { Empty, ErrorPanel, Skeleton } from "../../kit/parts/states";
import { Ago, utc } from "../../kit/parts/time";
import { useTitle } from "../../kit/page/title";
import { coverageNeeded, isMissing } from "../analysis/risk";
import { AdvicePanel } from "../function/advice";
import { HistoryPanel } from "../function/history";
import { SourcePanel } from "../function/source";
import type { Shown } from "../function/types";
import { projectName, repoName, shortCommit } from "../data/names";
import { analysisAt, functionAt, repoAt } from "../data/places";
import { isMeasured, isRisky, scoreText, stateText } from "../data/risky";
import type { ScreenProps } from "../screen";
import "../function/function.css";

export default function FunctionScreen({ params }: ScreenProps) {
  const [id, key] = [params["id"] ?? "", params["key"] ?? ""];
  const [task] = useQuery("task");
  const [whole] = useQuery("whole");
  const query = new URLSearchParams({ ...(task ? { at: task } : {}), ...(whole ? { whole: "true" } : {}) });
  const path = `/api/repos/${encodeURIComponent(id)}/functions/${encodeURIComponent(key)}?${query}`;
  const { value, error, reload } = useLoad((signal) => read<Shown>(path, signal), [path]);
  // the page stays while the same function is read with more lines
  const last = useRef<Shown | undefined>(undefined);
  if (value) last.current = value;
  const kept = last.current && last.current.key === key && last.current.id === id && (!task || last.current.task_id === task) ? last.current : undefined;
  const shown = value ?? (error ? undefined : kept);
  if (error && !value) {
    return (
      <div class="page">
        <Crumbs above={[{ name: "Analyses", to: "/analyses" }, { name: "analysis", to: analysisAt(id, task) }]} here={key} />
        <h1>{key}</h1>
        {isMissing(error) ? (
          <Empty title="The analysis has no such function">
            <p>It may be new, moved, renamed or gone at that commit.</p>
            <p>
              <Link to={analysisAt(id, task)}>All functions of the analysis</Link>
            </p>
          </Empty>
        ) : (
          <ErrorPanel error={error} retry={reload} />
        )}
      </div>
    );
  }
  return shown ? <Page shown={shown} isLatest={!task} /> : <Skeleton lines={8} />;
}

function Page({ shown, isLatest }: { shown: Shown; isLatest: boolean }) {
  const name = projectName(shown.repo_url, shown.project);
  const commit = shortCommit(shown.commit_sha);
  const task = isLatest ? "" : shown.task_id;
  const analysis = shown.project === "." ? (isLatest ? "latest analysis" : `analysis of ${commit}`) : shown.project;
  useTitle(`${shown.function} ${scoreText(shown)}, ${name} ${commit}`, 1);
  return (
    <div class="page function">
      <Crumbs
        above={[
          { name: "Repositories", to: "/repos" },
          { name: repoName(shown.repo_url), to: repoAt(shown.repo_id) },
          { name: analysis, to: analysisAt(shown.id, task) },
        ]}
        here={shown.function}
      />
      <header class="page-head">
        <div>
          <h1>
            <code>{shown.function}</code>
          </h1>
          <p class="muted">
            {shown.link ? (
              <a href={shown.link} target="_blank" rel="noreferrer" title="On the repository's host, at the commit that was analysed">
                {shown.file}:{shown.line}
              </a>
            ) : (
              <>
                {shown.file}:{shown.line}
              </>
            )}{" "}
            in {name} at <code>{commit}</code> {shown.ref}, <Ago at={shown.analyzed_at} /> ago<span class="print-only"> ({utc(shown.analyzed_at)})</span>
          </p>
          <p class="print-only">{location.href}</p>
        </div>
        <p class="line no-print">
          <button type="button" class="small" onClick={() => print()}>
            Print
          </button>
        </p>
      </header>
      {shown.others.length > 0 && (
        <p class="muted">
          The package has other functions with this name:{" "}
          {shown.others.map((other, index) => (
            <>
              {index > 0 && ", "}
              <Link key={other} to={functionAt(shown.id, other, task)}>
                {other}
              </Link>
            </>
          ))}
        </p>
      )}
      <Figures shown={shown} />
      <div class="function-columns">
        <AdvicePanel shown={shown} />
        <SourcePanel shown={shown} />
        <HistoryPanel key={shown.task_id} shown={shown} />
      </div>
    </div>
  );
}

const percent = (value: number): string => `${Number.isInteger(value) ? value : value.toFixed(1)} %`;

function Figures({ shown }: { shown: Shown }) {
  const needed = coverageNeeded(shown.cyclomatic, shown.threshold);
  const risky = isRisky(shown, shown.threshold);
  return (
    <>
      <dl class="function-figures">
        <div>
          <dt>CRAP value</dt>
          <dd class={risky ? "bad" : ""}>{scoreText(shown)}</dd>
        </div>
        <div>
          <dt>Complexity</dt>
          <dd>{shown.cyclomatic}</dd>
        </div>
        <div>
          <dt>Coverage</dt>
          <dd>{isMeasured(shown) && shown.coverage !== null ? percent(shown.coverage) : "not known"}</dd>
        </div>
        {isMeasured(shown) && shown.stmt_coverage !== null && (
          <div>
            <dt>Statements covered</dt>
            <dd>{percent(shown.stmt_coverage)}</dd>
          </div>
        )}
        <div>
          <dt>Coverage needed for {shown.threshold}</dt>
          <dd>{needed === null ? "no coverage is enough" : percent(Math.ceil(needed * 10) / 10)}</dd>
        </div>
      </dl>
      {!isMeasured(shown) && (
        <p class="reason">
          Not measured, so not risky: {stateText(shown.state)}
          {shown.reason && `: ${shown.reason}`}
        </p>
      )}
    </>
  );
}
