// A task that is open: its state, its attempts with their stages and logs, and its result.

import { useEffect, useRef, useState } from "preact/hooks";
import { useCell } from "../../kit/data/cell";
import { Drawer } from "../../kit/page/drawer";
import { Problem, read, statusOf } from "../../kit/data/http";
import { useAgain, useLoad } from "../../kit/data/load";
import { Pill } from "../../kit/parts/pill";
import { Link } from "../../kit/page/router";
import { Copy, ErrorPanel, Skeleton } from "../../kit/parts/states";
import { Ago, duration, Took, useNow, utc } from "../../kit/parts/time";
import { useTitle } from "../../kit/page/title";
import { analyse, cancel, canCancel, canRetry, retry, seen } from "../data/actions";
import { plural, projectName, score, shortCommit, stageOf } from "../data/names";
import { functionAt, repoAt, resultOf, taskAt } from "../data/places";
import { useRepos } from "../data/repos";
import { coveredText, figuresOf, riskyOf, scoreText } from "../data/risky";
import { tasks, useEventsOf } from "../data/tasks";
import type { Analysis, Attempt, Task } from "../data/types";

const WORST = 10;

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

function Attempts({ task, version }: { task: Task; version: number }) {
  const { value, error, reload } = useLoad((signal) => read<Attempt[]>(`/api/tasks/${task.id}/attempts`, signal), [task.id]);
  const [chosen, setChosen] = useState<number | null>(null);
  useAgain(reload, version);
  if (error && !value) return <ErrorPanel error={error} retry={reload} />;
  if (!value) return <Skeleton />;
  if (value.length === 0) return <p class="muted">{canCancel(task) ? "No attempt yet: it waits for a worker." : "No worker began it."}</p>;
  const shown = value.find((attempt) => attempt.attempt === chosen) ?? value.at(-1);
  return (
    <section aria-labelledby="attempts-title">
      <h3 id="attempts-title">Attempts</h3>
      <ol class="attempts">
        {value.map((attempt) => (
          <li key={attempt.attempt}>
            <button type="button" aria-pressed={attempt === shown} onClick={() => setChosen(attempt.attempt)}>
              <strong>{attempt.attempt}</strong>
              <Pill state={attempt.outcome ?? "running"} />
              <span class="muted">{attempt.worker}</span>
              <span class="end">
                <Took from={attempt.started_at} to={attempt.ended_at} />
              </span>
            </button>
          </li>
        ))}
      </ol>
      {shown && <Timeline attempt={shown} />}
      {shown?.reason && <p class="reason">{shown.reason}</p>}
      {shown && <Log key={`${task.id} ${shown.attempt}`} task={task.id} attempt={shown.attempt} />}
    </section>
  );
}

/** The stages of an attempt, with their durations. */
function Timeline({ attempt }: { attempt: Attempt }) {
  const present = useNow();
  if (attempt.stages.length === 0) return null;
  const end = attempt.ended_at ? Date.parse(attempt.ended_at) : present;
  const spans = attempt.stages.map((stage) => ({
    ...stage,
    took: stage.duration_ms ?? Math.max(0, end - Date.parse(stage.started_at)),
  }));
  const all = Math.max(1, spans.reduce((sum, span) => sum + span.took, 0));
  return (
    <ol class="timeline" aria-label="Stages">
      {spans.map((span, index) => (
        <li key={`${span.stage} ${index}`} class={span.duration_ms === null && !attempt.ended_at ? "lasts" : ""}>
          <span class="stage">{span.stage}</span>
          <span class="bar" aria-hidden="true">
            <span
              style={{
                marginInlineStart: `${(100 * spans.slice(0, index).reduce((sum, before) => sum + before.took, 0)) / all}%`,
                width: `${Math.max(0.5, (100 * span.took) / all)}%`,
              }}
            />
          </span>
          <span class="number">{duration(span.took)}</span>
        </li>
      ))}
    </ol>
  );
}

const MOST_TEXT = 400_000;
/** Milliseconds until a log that was refused is asked for again. */
const AGAIN = 2_000;

/** The log of an attempt, line by line as it arrives. After a lost connection or a refusal it resumes behind the last line. */
function Log({ task, attempt }: { task: string; attempt: number }) {
  const [text, setText] = useState("");
  const [state, setState] = useState<"reads" | "follows" | "cut" | "ended" | "none">("reads");
  const box = useRef<HTMLPreElement>(null);
  const atEnd = useRef(true);
  useEffect(() => {
    let waiting = "";
    let frame = 0;
    let timer = 0;
    let last = "0";
    let isOver = false;
    let source: EventSource;
    const url = () => `/api/tasks/${task}/attempts/${attempt}/log/sse?last_event_id=${last}`;
    const open = () => {
      source = new EventSource(url());
      source.addEventListener("open", () => setState("follows"));
      source.addEventListener("log", (event: MessageEvent<string>) => {
        last = event.lastEventId;
        waiting += (JSON.parse(event.data) as { text: string }).text;
        frame ||= requestAnimationFrame(() => {
          frame = 0;
          const more = waiting;
          waiting = "";
          setText((before) => (before + more).slice(-MOST_TEXT));
        });
      });
      source.addEventListener("end", () => {
        source.close();
        setState("ended");
      });
      source.addEventListener("error", () => {
        setState("cut");
        if (source.readyState === EventSource.CLOSED) void refused();
      });
    };
    const refused = async () => {
      const status = await statusOf(url());
      if (isOver) return;
      if (status === 404) setState("none");
      else timer = window.setTimeout(open, AGAIN);
    };
    open();
    return () => {
      isOver = true;
      source.close();
      clearTimeout(timer);
      cancelAnimationFrame(frame);
    };
  }, [task, attempt]);
  useEffect(() => {
    if (atEnd.current && box.current) box.current.scrollTop = box.current.scrollHeight;
  }, [text]);
  const scrolled = () => {
    const element = box.current;
    if (element) atEnd.current = element.scrollTop + element.clientHeight > element.scrollHeight - 24;
  };
  return (
    <section aria-labelledby="log-title">
      <h3 id="log-title">
        Log {state === "follows" && <span class="muted">live</span>} {text && <Copy text={text} what="log" />}
      </h3>
      {state === "cut" && <p class="bad">{text ? "The rest of the log" : "The log"} cannot be read now. It is tried again.</p>}
      {state === "none" && !text ? (
        <p class="muted">No log is kept of this attempt.</p>
      ) : (
        <pre class="log" ref={box} onScroll={scrolled} tabIndex={0} aria-label="Log" role="log">
          {text}
        </pre>
      )}
    </section>
  );
}

function Result({ task }: { task: Task }) {
  const { value, error, reload } = useLoad((signal) => read<Analysis>(`/api/tasks/${task.id}/result?entries=${WORST}`, signal), [task.id]);
  if (error) return error instanceof Problem && error.status === 404 ? null : <ErrorPanel error={error} retry={reload} />;
  if (!value) return <Skeleton />;
  const figures = figuresOf(value);
  return (
    <section aria-labelledby="result-title">
      <h3 id="result-title">Analysis</h3>
      <p>
        Average CRAP <strong>{score(figures.average)}</strong>, {riskyOf(value)} of {plural(figures.total_funcs, "function")} risky
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
