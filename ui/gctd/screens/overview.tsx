// The state of all: waiting and running tasks, risks, problems, the latest events.

import type { ComponentChildren } from "preact";
import { useMemo } from "preact/hooks";
import { useCell } from "../../kit/data/cell";
import { Chart } from "../../kit/charts/chart";
import { useAgain, useLoad } from "../../kit/data/load";
import { Pill } from "../../kit/parts/pill";
import { go, Link } from "../../kit/page/router";
import { Command, Empty, ErrorPanel, Skeleton } from "../../kit/parts/states";
import { Ago, useNow } from "../../kit/parts/time";
import { Treemap } from "../../kit/charts/treemap";
import { useActivity, type Happened } from "../data/activity";
import { count, plural, projectName, repoName, score } from "../data/names";
import { analysisAt, repoAt, taskAt } from "../data/places";
import { MOST_PROJECTS, regressions } from "../data/regressions";
import { Register } from "../repo/register";
import { outdated, useRepos } from "../data/repos";
import { MOST as MOST_TASKS, refresh, tasks } from "../data/tasks";
import type { Analysis, Repo, Task } from "../data/types";
import { slotsOf, workers } from "../data/workers";

const DAY = 86_400_000;
const MINUTE = 60_000;
const STALE_AFTER = 14 * DAY;
const MOST = 8;

export default function Overview() {
  const { repos, analyses, read, error } = useRepos();
  const list = useCell(tasks);
  const isRead = read && list.read;
  const anyError = error ?? list.error;
  return (
    <div class="page">
      <h1 class="hidden-text">Overview</h1>
      <Tiles analyses={analyses} read={read} />
      {list.isCut && <p class="muted">Figures of tasks are of the newest {count(MOST_TASKS)} tasks.</p>}
      {error ? <ErrorPanel error={error} retry={() => outdated(0)} /> : null}
      {list.error ? <ErrorPanel error={list.error} retry={() => void refresh()} /> : null}
      {read && repos.length === 0 ? (
        <section class="first" aria-label="First repository">
          <h2>See which functions are risky</h2>
          <p class="muted">Give the address of a repository with Go code. Its tests are run, and every function gets a score of complexity and coverage.</p>
          <Register title="Address of the repository" />
          <p class="muted">The same at a terminal:</p>
          <Command text="gctd repo add https://github.com/owner/name" />
        </section>
      ) : (
        <div class="columns">
          <div>
            <Panel title="Risk" note="area: functions; colour: share of risky functions">
              {read ? <RiskMap analyses={analyses} /> : <Unread error={error} />}
            </Panel>
            <Panel title="Needs attention">{isRead ? <Attention repos={repos} analyses={analyses} /> : <Unread error={anyError} />}</Panel>
          </div>
          <div>
            <Panel title="Last hour" note="tasks by the minute">
              {list.read ? <Throughput /> : <Unread error={list.error} />}
            </Panel>
            <Panel title="Worse this week">{read ? <Regressions analyses={analyses} /> : <Unread error={error} />}</Panel>
            <Panel title="Activity" note="as it happens">
              <Activity />
            </Panel>
          </div>
        </div>
      )}
    </div>
  );
}

/** The place of something that is not read yet, or could not be read: the page shows that error above. */
function Unread({ error }: { error: unknown }) {
  return error ? <p class="muted">Not known: it could not be read.</p> : <Skeleton />;
}

function Panel({ title, note, children }: { title: string; note?: string; children: ComponentChildren }) {
  return (
    <section class="panel" aria-label={title}>
      <header>
        <h2>{title}</h2>
        {note && <span class="muted">{note}</span>}
      </header>
      {children}
    </section>
  );
}

function Tile({ to, figure, name, note, tone = "" }: { to: string; figure: string; name: string; note: string; tone?: string }) {
  return (
    <li class="tile">
      <Link to={to}>
        <span class="tile-name">{name}</span> <strong class={`figure ${tone}`}>{figure}</strong> <span class="muted">{note}</span>
      </Link>
    </li>
  );
}

function Tiles({ analyses, read }: { analyses: readonly Analysis[]; read: boolean }) {
  const { counts, byId, read: knowsTasks } = useCell(tasks);
  const { list, read: knowsWorkers, error: noWorkers } = useCell(workers);
  const present = useNow();
  const functions = analyses.reduce((sum, one) => sum + one.measured.total_funcs, 0);
  const combined = analyses.reduce((sum, one) => sum + one.measured.combined, 0);
  const exceeded = analyses.reduce((sum, analysis) => sum + analysis.measured.exceeded, 0);
  let failed = 0;
  for (const { task } of byId.values()) if (isFailed(task) && present - Date.parse(task.updated_at) < DAY) failed += 1;
  const here = list.filter((worker) => worker.status !== "gone");
  const paused = here.filter((worker) => worker.status === "paused").length;
  const waiting = counts.queued + counts.pending;
  return (
    <ul class="tiles">
      <Tile to="/tasks?q=status:running" name="Running" figure={knowsTasks ? count(counts.running) : "–"} note={!knowsTasks ? "" : waiting ? `${count(waiting)} waiting` : "none waiting"} />
      <Tile
        to="/tasks?q=status:failed,expired"
        name="Failed in 24 h"
        figure={knowsTasks ? count(failed) : "–"}
        note={knowsTasks ? `${count(counts.failed + counts.expired)} in the list` : ""}
        tone={failed ? "bad" : ""}
      />
      <Tile
        to="/workers"
        name="Workers"
        figure={knowsWorkers && !noWorkers ? count(here.length) : "–"}
        note={noWorkers ? "could not be read" : !knowsWorkers ? "" : paused ? `${paused} paused` : plural(slotsOf(here), "slot")}
        tone={!noWorkers && list.length > 0 && here.length === 0 ? "bad" : ""}
      />
      <Tile to="/analyses?sort=-average" name="Average CRAP" figure={functions ? score(combined / functions) : "–"} note={read ? plural(analyses.length, "project") : ""} />
      <Tile to="/analyses?sort=-exceeded" name="Risky functions" figure={functions ? count(exceeded) : "–"} note={read ? `of ${plural(functions, "function")}` : ""} />
    </ul>
  );
}

const isFailed = (task: Task): boolean => task.status === "failed" || task.status === "expired";

function RiskMap({ analyses }: { analyses: readonly Analysis[] }) {
  if (analyses.length === 0) return <Empty title="No analysis yet" />;
  const tiles = analyses.map((analysis) => ({
    key: analysis.id,
    name: projectName(analysis.repo_info.url, analysis.project),
    label: projectName(analysis.repo_info.url, analysis.project),
    group: analysis.repo_id,
    size: analysis.measured.total_funcs,
    functions: analysis.measured.total_funcs,
    risky: analysis.measured.exceeded,
    about: [`average CRAP ${score(analysis.measured.average)}`],
  }));
  return <Treemap label="Projects by size and risk" tileName="Project" sizeName="Area" tiles={tiles} height={220} onOpen={(id) => go(analysisAt(id))} />;
}

/** The tasks that ended in each minute of the last hour, and the number of tasks that waited at its end. */
function Throughput() {
  const { byId } = useCell(tasks);
  const minute = Math.floor(useNow() / MINUTE);
  const { at, completed, failed, waited } = useMemo(() => {
    const first = minute - 59;
    const at = Array.from({ length: 60 }, (_, index) => (first + index) * 60);
    const zeros = () => new Array<number>(60).fill(0);
    const [completed, failed, waited] = [zeros(), zeros(), zeros()];
    for (const { task } of byId.values()) {
      const made = Math.floor(Date.parse(task.created_at) / MINUTE);
      const ended = ["completed", "failed", "expired"].includes(task.status) ? Math.floor(Date.parse(task.updated_at) / MINUTE) : Infinity;
      if (ended < first) continue;
      const series = isFailed(task) ? failed : completed;
      const index = ended - first;
      if (index < 60) series[index] = (series[index] ?? 0) + 1;
      for (let each = Math.max(0, made - first); each < Math.min(60, index); each += 1) waited[each] = (waited[each] ?? 0) + 1;
    }
    return { at, completed, failed, waited };
  }, [byId, minute, tasks.value]);
  const sum = (values: readonly number[]) => values.reduce((total, value) => total + value, 0);
  const along = useMemo(() => ({ at }), [at]);
  const series = useMemo(
    () => [
      { label: "completed", colour: "completed", values: completed, bars: true },
      { label: "failed or expired", colour: "failed", values: failed, bars: true },
      { label: "waiting or running", colour: "accent", values: waited },
    ],
    [completed, failed, waited],
  );
  const nameOf = (index: number) => `${new Date((at[index] ?? 0) * 1000).toISOString().slice(11, 16)} UTC`;
  return (
    <Chart
      label={`In the last hour ${plural(sum(completed), "task")} completed, ${sum(failed)} failed or expired; at most ${Math.max(...waited)} waited or ran at once.`}
      along={along}
      nameOf={nameOf}
      pointName="Minute"
      height={200}
      note="times in UTC"
      series={series}
    />
  );
}

interface Matter {
  key: string;
  to: string;
  state: string;
  word: string;
  name: string;
  why: string;
  at: string;
}

function Attention({ repos, analyses }: { repos: readonly Repo[]; analyses: readonly Analysis[] }) {
  const { byId } = useCell(tasks);
  const present = useNow();
  const found: Matter[] = [];
  for (const repo of repos) {
    if (repo.Status === "error") found.push({ key: repo.ID, to: repoAt(repo.ID), state: "error", word: "error", name: repoName(repo.URL), why: repo.StatusReason, at: "" });
  }
  const latest = new Map<string, Task>();
  for (const { task } of byId.values()) {
    const project = `${task.repo_url} ${task.project}`;
    const other = latest.get(project);
    if (!other || task.created_at > other.created_at) latest.set(project, task);
  }
  const failed = [...latest.values()].filter(isFailed);
  const seen = failed.filter((task) => task.seen).length;
  for (const task of failed) {
    if (!task.seen) {
      found.push({ key: task.id, to: taskAt(task.id), state: task.status, word: task.status, name: projectName(task.repo_url, task.project), why: task.reason, at: task.updated_at });
    }
  }
  for (const analysis of analyses) {
    if (analysis.uncovered.length > 0) {
      const [first] = analysis.uncovered;
      found.push({
        key: `u ${analysis.id}`,
        to: analysisAt(analysis.id),
        state: "pending",
        word: "partial",
        name: projectName(analysis.repo_info.url, analysis.project),
        why: `${plural(analysis.uncovered.length, "package")} without coverage: ${first?.reason ?? ""}`,
        at: analysis.analyzed_at,
      });
    }
    if (present - Date.parse(analysis.analyzed_at) > STALE_AFTER) {
      found.push({ key: `s ${analysis.id}`, to: repoAt(analysis.repo_id), state: "expired", word: "stale", name: projectName(analysis.repo_info.url, analysis.project), why: "not analysed for two weeks", at: analysis.analyzed_at });
    }
  }
  if (found.length === 0 && analyses.length === 0) return <p class="muted">No project is analysed yet.</p>;
  if (found.length === 0 && seen > 0) return <p class="muted">Nothing else. Failed and marked as seen: the latest task of {plural(seen, "project")}.</p>;
  if (found.length === 0) return <p class="good">Nothing in the lists needs attention.</p>;
  return (
    <ul class="matters">
      {found.slice(0, MOST).map((matter) => (
        <li key={matter.key}>
          <Pill state={matter.state} word={matter.word} />
          <span class="what">
            <Link to={matter.to}>{matter.name}</Link> <span class="muted">{matter.why}</span>
          </span>
          {matter.at && <Ago at={matter.at} />}
        </li>
      ))}
      {found.length > MOST && <li class="muted">and {plural(found.length - MOST, "other")}</li>}
    </ul>
  );
}

function Regressions({ analyses }: { analyses: readonly Analysis[] }) {
  const version = analyses.map((analysis) => analysis.task_id).join(" ");
  const { value: found, error, reload } = useLoad((signal) => regressions(analyses, signal), []);
  useAgain(reload, version);
  if (error) return <ErrorPanel error={error} retry={reload} />;
  if (!found) return <Skeleton />;
  if (found.length === 0) {
    // Only averages were compared: a function of a project may be worse, and its gate red.
    return <p class="muted">{analyses.length > MOST_PROJECTS ? `No average rose among the ${MOST_PROJECTS} projects that were analysed last.` : "The average of no project rose."}</p>;
  }
  return (
    <ul class="matters">
      {found.slice(0, MOST).map((change) => (
        <li key={change.analysis.id}>
          <strong class="bad figure-small">+{score(change.by)}</strong>
          <span class="what">
            <Link to={analysisAt(change.analysis.id)}>{projectName(change.analysis.repo_info.url, change.analysis.project)}</Link>{" "}
            <span class="muted">
              average {score(change.before)} to {score(change.analysis.measured.average)}
              {change.exceeded > 0 && `, ${change.exceeded} more risky`}
              {change.measured && "; measured differently since"}
            </span>
          </span>
          <Ago at={change.analysis.analyzed_at} />
        </li>
      ))}
    </ul>
  );
}

function Activity() {
  const happened = useActivity();
  if (happened.length === 0) return <p class="muted">No event since this page was opened.</p>;
  return (
    <ol class="activity" aria-label="Events, the newest first">
      {happened.map((each) => (
        <Line key={each.id} happened={each} />
      ))}
    </ol>
  );
}

function Line({ happened: { id, text, to, at } }: { happened: Happened }) {
  return (
    <li data-event={id}>
      <code class="muted">{id}</code>
      <span class="what">{to ? <Link to={to}>{text}</Link> : text}</span>
      <Ago at={at} />
    </li>
  );
}
