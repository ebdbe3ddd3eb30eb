// The workers: what each is, what it works on, what it uses; pause and go on.

import { useState } from "preact/hooks";
import { useCell } from "../../kit/cell";
import { complain, say } from "../../kit/dialogs";
import { ask, textOf } from "../../kit/http";
import { Pill } from "../../kit/pill";
import { Link } from "../../kit/router";
import { Spark } from "../../kit/spark";
import { Command, Empty, ErrorPanel, Skeleton } from "../../kit/states";
import { age, Ago, useNow, utc } from "../../kit/time";
import { plural, projectName } from "../names";
import { tasks } from "../tasks";
import type { Worker } from "../types";
import { readWorkers, SPAN, workers } from "../workers";

const ORDER = ["busy", "idle", "draining", "paused", "gone"];

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
            {plural(here.reduce((sum, worker) => sum + (worker.concurrency ?? 0), 0), "place")} taken, {cores.toFixed(1)} cores used
          </p>
        )}
      </div>
      {error ? <ErrorPanel error={error} retry={() => void readWorkers()} /> : null}
      {!read && !error && <Skeleton />}
      {read && here.length === 0 && (
        <Empty title="No worker is present">
          <p>Nothing is analysed until one is. Start one on this host or another:</p>
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
      <div class="used">
        <Spark
          points={points}
          most={most}
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
            <dt>Heard of</dt>
            <dd>
              <Heard at={worker.heard_at} />
            </dd>
          </>
        )}
        <dt>Has</dt>
        <dd>
          {[worker.version && `gctd ${worker.version}`, worker.go_version, ...Object.entries(worker.engines).map(([name, version]) => `${name} ${version}`)]
            .filter(Boolean)
            .join(", ")}
        </dd>
        <dt>Sandbox</dt>
        <dd class={worker.sandbox === "none" ? "bad" : ""}>{worker.sandbox || "not known"}</dd>
      </dl>
      <Pause worker={worker} />
    </li>
  );
}

/** How long a worker has said nothing: what it says of itself is as old. */
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
  const places = worker.concurrency ?? worker.tasks.length;
  if (worker.tasks.length === 0) return <p class="muted">Works on nothing; {plural(places, "place")} free.</p>;
  return (
    <ul class="plain-list">
      {worker.tasks.map((id) => {
        const task = byId.get(id)?.task;
        return (
          <li key={id}>
            {task ? (
              <>
                <Link to={`/tasks/${id}`}>{projectName(task.repo_url, task.project)}</Link> <span class="muted">{task.stage}</span>
              </>
            ) : id.startsWith("task-") ? (
              <Link to={`/tasks/${id}`}>{id}</Link>
            ) : (
              "looks for the projects of a repository"
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
      say(isPaused ? `${worker.id} takes jobs again.` : `${worker.id} takes no more jobs; what it works on goes on.`);
      await readWorkers();
    } catch (error) {
      complain(textOf(error));
    } finally {
      setBusy(false);
    }
  };
  return (
    <p class="buttons left">
      <button type="button" disabled={busy} onClick={() => void turn()} aria-label={`${isPaused ? "Let go on" : "Pause"} ${worker.id}`}>
        {isPaused ? "Go on" : "Pause"}
      </button>
    </p>
  );
}
