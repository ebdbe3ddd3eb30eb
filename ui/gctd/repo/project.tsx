// A project of a repository: its score, its latest task as it runs, its worst functions, its actions.

import { useCell } from "../../kit/data/cell";
import { read } from "../../kit/data/http";
import { useLoad } from "../../kit/data/load";
import { Pill } from "../../kit/parts/pill";
import { Link } from "../../kit/page/router";
import { ErrorPanel, Skeleton } from "../../kit/parts/states";
import { Ago, Took } from "../../kit/parts/time";
import { analyse } from "../data/actions";
import type { Whole } from "../analysis/types";
import { count, plural, score, shortCommit, stageOf } from "../data/names";
import { analysisAt, functionAt, historyAt, taskAt } from "../data/places";
import { coveredText, scoreText } from "../data/risky";
import { refresh, tasks } from "../data/tasks";
import type { Analysis, Project, Repo, Task } from "../data/types";
import { Settings } from "./settings";

/** The finding of a check for updates about a project. `remote_sha` is null if its ref was not looked up. */
export interface Update {
  repo_url: string;
  project: string | null;
  ref: string | null;
  recorded_sha: string | null;
  remote_sha: string | null;
  moved: boolean;
  scheduled: boolean;
  note: string | null;
  error: string | null;
}

interface Props {
  repo: Repo;
  project: Project;
  analysis: Analysis | undefined;
  update: Update | undefined;
  /** Whether its worst functions are read. */
  isDetailed: boolean;
  isOpen: boolean;
  toggle: () => void;
}

const WORST = 3;
const depthOf = (name: string): number => (name === "." ? 0 : name.split("/").length - 1);
const isUnderWay = (task: Task): boolean => ["pending", "queued", "running"].includes(task.status);

/** The tasks of a repository, the newest first. */
export function useTasksOf(url: string): readonly Task[] {
  const { order, byId } = useCell(tasks);
  return order.flatMap((id) => {
    const task = byId.get(id)?.task;
    return task?.repo_url === url ? [task] : [];
  });
}

export function ProjectNode({ repo, project, analysis, update, isDetailed, isOpen, toggle }: Props) {
  const [task] = useTasksOf(repo.URL).filter((each) => each.project === project.name);
  const about = [
    plural(project.packages, "package"),
    project.go_version && `go ${project.go_version}`,
    project.in_workspace && "in the workspace",
    !project.has_tests && "no tests",
  ].filter(Boolean);
  return (
    <li data-project={project.name} style={{ paddingInlineStart: `${depthOf(project.name) * 16}px` }}>
      <div class="node">
        <div class="what">
          <h3>{analysis ? <Link to={analysisAt(analysis.id)}>{nameOf(project)}</Link> : nameOf(project)}</h3>
          <code class="muted">{project.module_path}</code>
          <br />
          <span class="muted">{about.join(", ")}</span>
        </div>
        <div class="right">{analysis ? <Score analysis={analysis} /> : <span class="muted">not analysed</span>}</div>
      </div>
      {project.problem && <p class="reason">{project.problem}</p>}
      {task && task.id !== analysis?.task_id && (isUnderWay(task) || !analysis || task.status === "failed" || task.status === "expired") && <Latest task={task} />}
      {analysis && isDetailed && <Worst analysis={analysis} />}
      {update && <Moved update={update} />}
      <p class="buttons left">
        <button type="button" class="small" disabled={repo.Status !== "ready"} aria-label={`Analyse ${project.name}`} onClick={() => void analyse(repo.URL, project.name)}>
          Analyse
        </button>
        {project.name !== "." && ( // the settings of the root are the repository's, below
          <button type="button" class="small" aria-expanded={isOpen} aria-label={`Settings of ${project.name}`} onClick={toggle}>
            Settings
          </button>
        )}
        {analysis && <Link to={historyAt(analysis.id)}>History and comparison</Link>}
      </p>
      {isOpen && project.name !== "." && <Settings url={repo.URL} subdir={project.name} id={`p-${project.name}`} />}
    </li>
  );
}

const nameOf = (project: Project): string => (project.name === "." ? "root" : project.name);

function Score({ analysis }: { analysis: Analysis }) {
  const { id } = analysis;
  const figures = analysis.measured;
  return (
    <>
      <Link to={analysisAt(id)} title="the latest analysis">
        average CRAP {score(figures.average)}
      </Link>
      <br />
      <Link to={`${analysisAt(id)}?only=risky`} class="muted">
        {count(analysis.measured.exceeded)} of {plural(figures.total_funcs, "function")} risky
      </Link>
    </>
  );
}

/** The task that was queued last: its stage with the packages that are tested, or the reason of its end. */
function Latest({ task }: { task: Task }) {
  const { progress } = task;
  return (
    <div class="latest" role="status">
      <p class="line">
        <Link to={taskAt(task.id)} aria-label={`Task: ${task.status}`}>
          <Pill state={task.status} />
        </Link>
        {task.status === "running" && <span data-progress>{stageOf(task)}</span>}
        {isUnderWay(task) && (
          <span class="muted">
            for <Took from={task.created_at} to={null} />
          </span>
        )}
        {!isUnderWay(task) && task.reason && <span class="muted">{task.reason}</span>}
      </p>
      {task.status === "running" && progress && <progress value={progress.done} max={Math.max(1, progress.total)} aria-label={`Progress in ${progress.unit}`} />}
    </div>
  );
}

/** The functions with the highest values, each with a way to it. */
function Worst({ analysis }: { analysis: Analysis }) {
  const { value, error } = useLoad((signal) => read<Whole>(`/api/tasks/${analysis.task_id}/result?entries=${WORST}`, signal), [analysis.task_id]);
  if (error) return <ErrorPanel error={error} />;
  if (!value || value.entries.length === 0) return null;
  return (
    <ol class="plain-list worst" aria-label="Worst functions">
      {value.entries.map((entry) => (
        <li key={`${entry.file} ${entry.line}`}>
          <Link to={functionAt(analysis.id, entry.key)}>{entry.function}</Link>{" "}
          <span class="muted">
            CRAP {scoreText(entry)}, complexity {entry.cyclomatic}, {coveredText(entry)}
          </span>
        </li>
      ))}
    </ol>
  );
}

function Moved({ update }: { update: Update }) {
  if (update.error) return <p class="bad">{update.error}</p>;
  if (update.remote_sha === null) return <p class="muted">Not checked: {update.note}</p>;
  return (
    <p>
      {update.moved ? <Pill state="queued" word="moved" /> : <Pill state="ready" word="not moved" />} <code>{update.ref}</code> leads to <code>{shortCommit(update.remote_sha)}</code>
      {update.moved && <span class="muted">; the latest analysis is of {update.recorded_sha ? <code>{shortCommit(update.recorded_sha)}</code> : "no commit yet"}</span>}
      {update.note && <span class="muted">; {update.note}</span>}
    </p>
  );
}

const RECENT = 8;

/** The latest tasks of a repository; a completed one links to its analysis. */
export function RecentTasks({ url }: { url: string }) {
  const all = useTasksOf(url);
  const { read: isRead, error } = useCell(tasks);
  if (all.length === 0 && !isRead) return error ? <ErrorPanel error={error} retry={() => void refresh()} /> : <Skeleton />;
  if (all.length === 0) return <p class="muted">There is no task in the list.</p>;
  return (
    <>
      <ul class="matters">
        {all.slice(0, RECENT).map((task) => (
          <li key={task.id}>
            <Link to={taskAt(task.id)} aria-label={`Task: ${task.status}`}>
              <Pill state={task.status} />
            </Link>
            <span class="what">
              {task.status === "completed" && task.analysis_id ? (
                <Link to={analysisAt(task.analysis_id, task.id)}>{task.project === "." ? "root" : task.project}</Link>
              ) : (
                <span>{task.project === "." ? "root" : task.project}</span>
              )}{" "}
              <span class="muted">
                <code>{task.ref}</code> {task.commit_sha && <code>{shortCommit(task.commit_sha)}</code>} {task.rescored_from && "rescored"}
              </span>
            </span>
            <Ago at={task.created_at} />
          </li>
        ))}
      </ul>
      <p>
        <Link to={`/tasks?q=${encodeURIComponent(`repo:${url.replace(/^\w+:\/\//, "")}`)}`}>{all.length > RECENT ? `All ${count(all.length)} tasks` : "In the list of tasks"}</Link>
      </p>
    </>
  );
}
