// The workers: kind, jobs and use of the machine of each; pause and resume.

import { useState } from "preact/hooks";
import { useCell } from "../../kit/data/cell";
import { complain, say } from "../../kit/parts/dialogs";
import { ask, textOf } from "../../kit/data/http";
import { Pill } from "../../kit/parts/pill";
import { Link } from "../../kit/page/router";
import { Spark } from "../../kit/charts/spark";
import { Command, Empty, ErrorPanel, Skeleton } from "../../kit/parts/states";
import { age, Ago, useNow, utc } from "../../kit/parts/time";
import { plural, projectName, stageOf } from "../data/names";
import { tasks } from "../data/tasks";
import type { Worker } from "../data/types";
import { readWorkers, slotsOf, SPAN, workers } from "../data/workers";

const ORDER = ["full", "busy", "idle", "draining", "paused", "gone"];

export default function Workers() {
  const { list, read, error } = useCell(workers);
  const here = list.filter((worker) => worker.status !== "gone");
  const gone = list.filter((worker) => worker.status === "gone");
  const rank = (worker: Worker) => ORDER.indexOf(worker.status);
  const cores = here.reduce((sum, worker) => sum + (worker.cpu ?? 0), 0);
  return (
    <div class="page">
      <div class="page-head">
        <h1>Workers</h1>
        {read && here.length > 0 && (
          <p class="muted">
            {plural(here.length, "worker")} present, {here.reduce((sum, worker) => sum + worker.tasks.length, 0)} of{" "}
            {plural(slotsOf(here), "slot")} taken, {cores.toFixed(1)} cores used
          </p>
        )}
      </div>
      {error ? <ErrorPanel error={error} retry={() => void readWorkers()} /> : null}
      {!read && !error && <Skeleton />}
      {read && here.length === 0 && (
        <Empty title="No worker is present">
          <p>Analyses need a worker. Start one on this host or another:</p>
          <Command text="gctd worker" />
        </Empty>
      )}
      <ul class="cards">
        {[...here]
          .sort((a, b) => rank(a) - rank(b) || (a.id < b.id ? -1 : 1))
          .map((worker) => (
            <Card key={worker.id} worker={worker} />
          ))}
      </ul>
      {gone.length > 0 && (
        <details class="panel">
          <summary>{plural(gone.length, "worker")} gone</summary>
          <ul class="plain-list">
            {gone.map((worker) => (
              <li key={worker.id}>
                {worker.id} <span class="muted">on {worker.host}, started</span> <Ago at={worker.started_at} /> <span class="muted">ago</span>
              </li>
            ))}
          </ul>
        </details>
      )}
    </div>
  );
}

function Card({ worker }: { worker: Worker }) {
  const { used, at } = useCell(workers);
  const points = used.get(worker.id) ?? [];
  const most = Math.max(1, worker.concurrency ?? 1, ...points.map(([, cores]) => cores));
  const cores = worker.cpu ?? 0;
  return (
    <li class="panel card" data-worker={worker.id}>
      <header>
        <h2>{worker.id}</h2>
        <Pill state={worker.status} />
      </header>
      {worker.reason && <p class="bad">Takes no jobs: {worker.reason}</p>}
      <div class="used">
        <Spark
          points={points}
          most={most}
          unit="cores"
          span={SPAN}
          until={at}
          label={`Cores used in the last ten minutes: ${cores.toFixed(1)} now, at most ${Math.max(0, ...points.map(([, value]) => value)).toFixed(1)}`}
        />
        <p class="line">
          <span>
            <strong class="figure">{cores.toFixed(2)}</strong> <span class="muted">cores</span>
          </span>
          <span>
            <strong class="figure">{((worker.memory ?? 0) / 2 ** 20).toFixed(0)}</strong> <span class="muted">MiB</span>
          </span>
          <span class="muted">10 minutes, top {most.toFixed(most % 1 ? 1 : 0)}</span>
        </p>
      </div>
      <Work worker={worker} />
      <dl class="facts">
        <dt>Host</dt>
        <dd>
          {worker.host} <span class="muted">pid {worker.pid}</span>
        </dd>
        <dt>Started</dt>
        <dd>
          <Ago at={worker.started_at} /> ago
        </dd>
        {worker.heard_at && (
          <>
            <dt>Heartbeat</dt>
            <dd>
              <Heard at={worker.heard_at} />
            </dd>
          </>
        )}
        <dt>Versions</dt>
        <dd>
          {[worker.version && `gctd ${worker.version}`, worker.go_version, ...Object.entries(worker.engines).map(([name, version]) => `${name} ${version}`)]
            .filter(Boolean)
            .join(", ")}
        </dd>
        {worker.platform && (
          <>
            <dt>Platform</dt>
            <dd>{worker.platform}</dd>
          </>
        )}
        <dt>Sandbox</dt>
        <dd class={worker.sandbox === "none" ? "bad" : ""}>{worker.sandbox || "not known"}</dd>
        <dt>Work</dt>
        <dd>
          <Link to={`/tasks?q=${encodeURIComponent(`worker:${worker.id}`)}`}>its tasks</Link>, <Link to={`/log?of=${encodeURIComponent(`gctd.worker.${worker.id}`)}`}>its events</Link>
        </dd>
      </dl>
      <Pause worker={worker} />
    </li>
  );
}

/** The age of the last heartbeat, which is also the age of the worker's other values. */
function Heard({ at }: { at: string }) {
  const text = age(Date.parse(at), useNow());
  return (
    <time dateTime={at} title={utc(at)}>
      {text === "now" ? "just now" : `${text} ago`}
    </time>
  );
}

function Work({ worker }: { worker: Worker }) {
  const { byId } = useCell(tasks);
  if (worker.tasks.length === 0) return <p class="muted">{worker.status === "full" ? "No job" : "Idle"}; {plural(slotsOf([worker]), "slot")} free.</p>;
  return (
    <ul class="plain-list">
      {worker.tasks.map((id) => {
        const task = byId.get(id)?.task;
        return (
          <li key={id}>
            {task ? (
              <>
                <Link to={`/tasks/${id}`}>{projectName(task.repo_url, task.project)}</Link> <span class="muted">{stageOf(task)}</span>
              </>
            ) : id.startsWith("task-") ? (
              <Link to={`/tasks/${id}`}>{id}</Link>
            ) : (
              "finds the projects of a repository"
            )}
          </li>
        );
      })}
    </ul>
  );
}

function Pause({ worker }: { worker: Worker }) {
  const [busy, setBusy] = useState(false);
  const isPaused = worker.status === "paused";
  const turn = async () => {
    setBusy(true);
    try {
      await ask("POST", `/api/workers/${worker.id}/${isPaused ? "unpause" : "pause"}`);
      say(isPaused ? `${worker.id} takes jobs again.` : `${worker.id} takes no more jobs, and finishes its present tasks.`);
      await readWorkers();
    } catch (error) {
      complain(textOf(error));
    } finally {
      setBusy(false);
    }
  };
  return (
    <p class="buttons left">
      <button type="button" disabled={busy} onClick={() => void turn()} aria-label={`${isPaused ? "Resume" : "Pause"} ${worker.id}`}>
        {isPaused ? "Resume" : "Pause"}
      </button>
    </p>
  );
}
