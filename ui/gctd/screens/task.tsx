// A task that is open: its state, its attempts with their stages and logs, and its result.

import { useCell } from "../../kit/data/cell";
import { Drawer } from "../../kit/page/drawer";
import { read } from "../../kit/data/http";
import { useAgain, useLoad } from "../../kit/data/load";
import { Pill } from "../../kit/parts/pill";
import { Link } from "../../kit/page/router";
import { Copy, ErrorPanel, Skeleton } from "../../kit/parts/states";
import { Ago, Took, utc } from "../../kit/parts/time";
import { useTitle } from "../../kit/page/title";
import { analyse, cancel, canCancel, canRetry, retry, seen } from "../data/actions";
import { projectName, shortCommit, stageOf } from "../data/names";
import { repoAt, resultOf, taskAt } from "../data/places";
import { useRepos } from "../data/repos";
import { tasks, useEventsOf } from "../data/tasks";
import type { Task } from "../data/types";
import { Attempts } from "../task/attempts";
import { Result } from "../task/result";

export function TaskDrawer({ id, close }: { id: string; close: () => void }) {
  const known = useCell(tasks).byId.get(id);
  const loaded = useLoad((signal) => read<Task>(`/api/tasks/${encodeURIComponent(id)}`, signal), [id]);
  const version = useEventsOf(id);
  useAgain(loaded.reload, version); // the list does not have a task that is hidden or removed
  const task = known?.task ?? (loaded.error ? undefined : loaded.value);
  if (!task) {
    return (
      <Drawer title={id} close={close}>
        {loaded.error ? <ErrorPanel error={loaded.error} retry={loaded.reload} /> : <Skeleton />}
      </Drawer>
    );
  }
  return (
    <Drawer title={projectName(task.repo_url, task.project)} close={close}>
      <Titled task={task} />
      <Facts task={task} />
      <Attempts task={task} version={version} />
      {task.status === "completed" && <Result task={task} />}
    </Drawer>
  );
}

function Titled({ task }: { task: Task }) {
  useTitle(`${projectName(task.repo_url, task.project)}: ${task.id} ${task.status}`, 2);
  return null;
}

function Facts({ task }: { task: Task }) {
  const terminal = !canCancel(task);
  const known = useRepos().repos.find((repo) => repo.URL === task.repo_url);
  return (
    <section aria-label="Task">
      {task.status === "completed" && task.analysis_id && (
        <p>
          <Link to={resultOf(task)} class="to-result">
            Open the analysis
          </Link>
        </p>
      )}
      <p class="line">
        <Pill state={task.status} />
        {task.status === "running" && <span data-stage>{stageOf(task)}</span>}
        <span class="muted">
          attempt {task.attempt} of {task.max_attempts}
        </span>
        {task.seen && <span class="muted">seen</span>}
      </p>
      {task.reason && <p class="reason">{task.reason}</p>}
      <dl class="facts">
        <dt>Repository</dt>
        <dd>
          {known ? (
            <Link to={repoAt(known.ID)}>
              <code>{task.repo_url}</code>
            </Link>
          ) : (
            <code>{task.repo_url}</code>
          )}
        </dd>
        <dt>Ref</dt>
        <dd>
          <code>{task.ref}</code> {task.commit_sha && <code class="muted">{shortCommit(task.commit_sha)}</code>}
        </dd>
        <dt>Engine</dt>
        <dd>
          {task.engine}
          {task.rescored_from && (
            <>
              , scores the profile of <Link to={taskAt(task.rescored_from)}>{task.rescored_from}</Link> again
            </>
          )}
        </dd>
        {task.worker && (
          <>
            <dt>Worker</dt>
            <dd>
              <Link to="/workers">{task.worker}</Link>
            </dd>
          </>
        )}
        <dt>Created</dt>
        <dd title={utc(task.created_at)}>
          <Ago at={task.created_at} /> ago, {terminal ? "took" : "lasts"} <Took from={task.created_at} to={terminal ? task.updated_at : null} />
        </dd>
        <dt>Id</dt>
        <dd>
          <code>{task.id}</code>
        </dd>
      </dl>
      <p class="buttons left">
        {canCancel(task) && (
          <button type="button" class="danger" onClick={() => void cancel([task])}>
            Cancel
          </button>
        )}
        {canRetry(task) && (
          <button type="button" class="primary" onClick={() => void retry([task])}>
            Retry
          </button>
        )}
        {task.status === "completed" && (
          <button type="button" onClick={() => void analyse(task.repo_url, task.project, true)}>
            Analyse again
          </button>
        )}
        {!task.seen && (
          <button type="button" onClick={() => seen([task])}>
            Seen
          </button>
        )}
        <Copy text={JSON.stringify(task, null, 2)} what="JSON" />
      </p>
    </section>
  );
}
