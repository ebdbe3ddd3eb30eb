// The read model against the log: the position of each projection, parked aggregates, copies that are being made or kept.

import { useEffect } from "preact/hooks";
import { read } from "../../kit/data/http";
import { useEvery, useLoad } from "../../kit/data/load";
import { Pill } from "../../kit/parts/pill";
import { Link } from "../../kit/page/router";
import { Command, ErrorPanel, Skeleton } from "../../kit/parts/states";
import { Ago, duration } from "../../kit/parts/time";
import { stream } from "../data/live";
import { count, plural } from "../data/names";
import "../analysis/analysis.css";

interface Projection {
  name: string;
  version: number;
  position: number;
  lag_events: number;
  lag_seconds: number;
  applied: number;
  parked: number;
  waiting: number;
  problem: string | null;
}

interface Parked {
  projection: string;
  aggregate: string;
  sequence: number;
  events: string;
  error: string;
  waiting: number;
  at: string;
}

interface Copy {
  part: string;
  position: number;
  ready: boolean;
  problem: string | null;
}

interface ReadModel {
  read_model: string;
  stream: string;
  head: number;
  schema_version: number;
  state: string;
  since: string;
  rate: number;
  error: string | null;
  note: string | null;
  projections: Projection[];
  parked: Parked[];
  copies: Copy[];
  scrub: Scrub;
}

interface Scrub {
  position: number | null;
  until: number | null;
  completed: string | null;
  damaged: number | null;
  found: string[];
}

const AGAIN = 2_000;
const TONES: Readonly<Record<string, string>> = { live: "completed", "catching up": "running", starting: "running", waiting: "queued", stopped: "failed" };

export default function Projections() {
  const { value, error, reload } = useLoad((signal) => read<ReadModel>("/api/projections", signal), []);
  useEvery(AGAIN, reload);
  useEffect(() => stream.onResync(reload), []);
  if (error && !value) {
    return (
      <div class="page">
        <h1>Projections</h1>
        <ErrorPanel error={error} retry={reload} />
      </div>
    );
  }
  if (!value) return <Skeleton lines={6} />;
  return (
    <div class="page">
      <header class="page-head">
        <h1>Projections</h1>
        <p class="muted">
          read model {value.read_model}, schema {value.schema_version}, from the stream {value.stream}
        </p>
      </header>
      <ul class="figures" aria-label="Figures">
        <li>
          <Pill state={TONES[value.state] ?? "pending"} word={value.state} /> for <Ago at={value.since} />
        </li>
        <li>
          <Link to={value.head ? `/log/${value.head}` : "/log"}>
            <strong class="figure">{count(value.head)}</strong> last sequence of the log
          </Link>
        </li>
        <li>
          <strong class="figure">{value.rate.toFixed(1)}</strong> commits a second
        </li>
      </ul>
      {value.error && <p class="reason">{value.error}</p>}
      {value.note && <p class="reason">{value.note}</p>}
      <section class="panel" aria-label="Lag">
        <Progress model={value} />
      </section>
      <div class="panels">
        <section class="panel" aria-label="Parked">
          <h2>Parked</h2>
          <ParkedList parked={value.parked} />
        </section>
        <section class="panel" aria-label="Copies">
          <h2>Copies of the tables</h2>
          <Copies model={value} />
        </section>
        <section class="panel" aria-label="Records of the log">
          <h2>Records of the log</h2>
          <Scrubbed scrub={value.scrub} />
        </section>
      </div>
      {error ? <ErrorPanel error={error} /> : null}
    </div>
  );
}

const share = (position: number, head: number): number => (head ? Math.min(100, (100 * position) / head) : 100);

function Progress({ model: { projections, head } }: { model: ReadModel }) {
  return (
    <div class="scrolled" tabIndex={0} role="region" aria-label="Each projection">
      <table class="plain projections">
        <caption>Projections</caption>
        <thead>
          <tr>
            <th scope="col">Name</th>
            <th scope="col">Reached</th>
            <th scope="col" class="right">
              Sequence
            </th>
            <th scope="col" class="right">
              Behind
            </th>
            <th scope="col" class="right">
              Applied
            </th>
            <th scope="col" class="right">
              Parked
            </th>
          </tr>
        </thead>
        <tbody>
          {projections.map((one) => (
            <tr key={one.name}>
              <th scope="row">
                {one.name} <span class="muted">version {one.version}</span>
                {one.problem && <p class="reason">{one.problem}</p>}
              </th>
              <td>
                <Bar percent={share(one.position, head)} label={`${one.name} has reached`} />
              </td>
              <td class="right number">{count(one.position)}</td>
              <td class="right number">{one.lag_events ? `${count(one.lag_events)}, ${duration(1000 * one.lag_seconds)}` : "0"}</td>
              <td class="right number">{count(one.applied)}</td>
              <td class="right number">{one.parked ? <span class="bad">{`${count(one.parked)}, ${plural(one.waiting, "commit")}`}</span> : "0"}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function Bar({ percent, label }: { percent: number; label: string }) {
  return (
    <span class="progress" role="progressbar" aria-label={label} aria-valuemin={0} aria-valuemax={100} aria-valuenow={Math.floor(percent)}>
      <span style={{ width: `${percent}%` }} />
    </span>
  );
}

function ParkedList({ parked }: { parked: readonly Parked[] }) {
  if (parked.length === 0) return <p class="good">No aggregate is parked: every commit was applied.</p>;
  return (
    <>
      <ul class="plain-list">
        {parked.map((one) => (
          <li key={`${one.projection} ${one.aggregate}`}>
            <Link to={`/log/${one.sequence}`}>{one.aggregate}</Link> in {one.projection}: {one.events || "unreadable"} at {count(one.sequence)},{" "}
            {plural(one.waiting, "commit")} waiting since <Ago at={one.at} />
            <p class="reason">{one.error}</p>
          </li>
        ))}
      </ul>
      <Command text="projections parked" />
    </>
  );
}

function Scrubbed({ scrub: { position, until, completed, damaged, found } }: { scrub: Scrub }) {
  const isRunning = position !== null && until !== null && position < until;
  return (
    <>
      {damaged ? (
        <>
          <p class="bad">{plural(damaged, "record")} damaged. Delete no tables and no backups.</p>
          <ul class="plain-list">
            {found.map((one) => (
              <li key={one} class="reason">
                {one}
              </li>
            ))}
          </ul>
          <Command text="projections repair" />
        </>
      ) : (
        <p class={completed ? "good" : "muted"}>{completed ? "Every record can be read and follows the one before it." : "No pass over the log is complete yet."}</p>
      )}
      {completed && (
        <p class="muted">
          Last complete pass: <Ago at={completed} />
        </p>
      )}
      {isRunning && (
        <>
          <p class="muted">
            This pass: {count(position)} of {count(until)}
          </p>
          <Bar percent={share(position, until)} label="This pass has reached" />
        </>
      )}
    </>
  );
}

const PARTS: Readonly<Record<string, string>> = { new: "being rebuilt", old: "from before the last switch" };

function Copies({ model: { copies, head, read_model: name } }: { model: ReadModel }) {
  if (copies.length === 0) {
    return (
      <>
        <p class="muted">There are no copies. A rebuild makes new tables next to the live ones:</p>
        <Command text={`projections rebuild ${name}`} />
      </>
    );
  }
  return (
    <ul class="plain-list">
      {copies.map((copy) => (
        <CopyLine key={copy.part} copy={copy} head={head} />
      ))}
    </ul>
  );
}

function CopyLine({ copy: { part, position, ready, problem }, head }: { copy: Copy; head: number }) {
  const isWrong = !ready && part !== "new"; // a new one is being made, or was left, and is gone on with
  return (
    <li>
      <p class="line">
        <strong>{PARTS[part] ?? part}</strong>
        <Pill state={ready ? "completed" : isWrong ? "failed" : "running"} word={ready ? "ready" : isWrong ? "cannot be used" : "not ready yet"} />
        <span class="muted">
          {count(position)} of {count(head)}
        </span>
      </p>
      <Bar percent={share(position, head)} label={`The copy ${PARTS[part] ?? part} has reached`} />
      {problem && <p class={isWrong ? "reason" : "muted"}>{problem}</p>}
    </li>
  );
}
