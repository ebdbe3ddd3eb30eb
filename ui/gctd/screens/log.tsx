// The event log: every event with its sequence, found by kind, type, aggregate and text; and how things were at any of them.

import { useState } from "preact/hooks";
import { Drawer } from "../../kit/page/drawer";
import { read } from "../../kit/data/http";
import { useLoad } from "../../kit/data/load";
import { go, Link, useQuery, withQuery } from "../../kit/page/router";
import { Copy, Empty, ErrorPanel, Skeleton } from "../../kit/parts/states";
import { type Column, Table } from "../../kit/parts/table";
import { Ago, utc } from "../../kit/parts/time";
import { useTitle } from "../../kit/page/title";
import { type Entry, type Page, useLog } from "../data/log";
import { count, plural } from "../data/names";
import type { ScreenProps } from "../screen";
import "./log.css";

interface State {
  aggregate: string;
  sequence: number;
  at: string;
  version: number;
  state: unknown;
  events: Entry[];
}

const KINDS = ["repo", "task", "verdict", "delivery", "schedule", "worker", "token"];
const PAGE = 200;

const openAt = (entry: Entry): string => withQuery({}, `/log/${entry.position}`);

const COLUMNS: readonly Column<Entry>[] = [
  {
    id: "position",
    title: "Sequence",
    width: "104px",
    cell: (entry) => (
      <Link to={openAt(entry)} data-row class="name">
        {entry.position}
      </Link>
    ),
    phone: "first",
  },
  { id: "type", title: "Event", width: "176px", cell: (entry) => entry.type ?? <span class="bad">cannot be read</span>, phone: "first" },
  { id: "aggregate", title: "Aggregate", width: "264px", cell: (entry) => <code title={entry.aggregate}>{entry.aggregate}</code>, phone: "second" },
  { id: "actor", title: "By", width: "112px", cell: ({ actor }) => actor && <span title={actor}>{short(actor)}</span>, phone: "hidden" },
  { id: "data", title: "Data", cell: (entry) => <code class="muted">{said(entry)}</code>, phone: "hidden" },
  { id: "age", title: "Age", width: "72px", align: "right", cell: (entry) => entry.at && <Ago at={entry.at} />, phone: "second" },
];

/** The caller in few letters: the name of a token, of a worker, of a user; a caller without a name as it is. */
function short(actor: string): string {
  return actor.split(":").at(-1) ?? actor;
}

/** The members of an event in one line, without the time that the row has anyway. */
function said({ data, problem }: Entry): string {
  if (problem) return problem;
  if (typeof data !== "object" || data === null) return JSON.stringify(data);
  const members = Object.entries(data).filter(([name]) => name !== "at");
  return members.map(([name, value]) => `${name}=${typeof value === "object" ? JSON.stringify(value) : String(value)}`).join(" ").slice(0, 300);
}

export default function EventLog({ params }: ScreenProps) {
  const [text, setText] = useQuery("q");
  const [kind, setKind] = useQuery("kind");
  const [type, setType] = useQuery("type");
  const [aggregate, setAggregate] = useQuery("of");
  const query = new URLSearchParams({ limit: String(PAGE) });
  if (text) query.set("text", text);
  if (kind) query.set("category", kind);
  if (aggregate) query.set("aggregate", aggregate);
  for (const name of type.split(/[\s,]+/).filter(Boolean)) query.append("type", name);
  const path = `/api/log?${query}`;
  const close = () => go(withQuery({}, "/log"));
  const chosen = [kind, type, aggregate, text].filter(Boolean).join(" ");
  useTitle(chosen && `Event log: ${chosen}`, 1);
  return (
    <div class="page full">
      <section class="list" aria-label="Events">
        <div class="toolbar log-filter">
          <h1>Event log</h1>
          <Field label="Text" value={text} set={setText} placeholder="any text" />
          <label>
            <span class="hidden-text">Kind</span>
            <select value={kind} onChange={(event) => setKind(event.currentTarget.value)}>
              <option value="">all kinds</option>
              {KINDS.map((name) => (
                <option key={name}>{name}</option>
              ))}
            </select>
          </label>
          <Field label="Types" value={type} set={setType} placeholder="types: TaskFailed" />
          <Field label="Aggregate" value={aggregate} set={setAggregate} placeholder="aggregate: gctd.task.task-17" />
          <button type="button" disabled={!(text || kind || type || aggregate)} onClick={() => go(withQuery({ q: null, kind: null, type: null, of: null }))}>
            Clear
          </button>
        </div>
        <Found key={path} path={path} open={params["position"] ?? null} />
      </section>
      {params["position"] && <EntryDrawer key={params["position"]} position={params["position"]} close={close} />}
    </div>
  );
}

/** A field that takes effect with Enter, or when it is left. */
function Field({ label, value, set, placeholder }: { label: string; value: string; set: (text: string) => void; placeholder: string }) {
  return (
    <input
      type="search"
      aria-label={label}
      value={value}
      placeholder={placeholder}
      spellcheck={false}
      autocomplete="off"
      onChange={(event) => set(event.currentTarget.value.trim())}
    />
  );
}

function Found({ path, open }: { path: string; open: string | null }) {
  const { reading, error, busy, newer, readAgain, readOlder } = useLog(path);
  if (error && !reading) return <ErrorPanel error={error} retry={readAgain} />;
  if (!reading) return <Skeleton lines={8} />;
  const { entries, from, end, next } = reading;
  return (
    <>
      <p class="line" role="status">
        <span class="muted">
          {plural(entries.length, "event")}; sequences {count(from)} to {count(end)}
        </span>
        {newer > 0 && (
          <button type="button" class="small primary" onClick={readAgain}>
            {count(newer)} since: read again
          </button>
        )}
      </p>
      {entries.length === 0 && !next && <Empty title="No event matches" />}
      {entries.length > 0 && <Table label="Events" rows={entries} keyOf={(entry) => entry.position} columns={COLUMNS} open={open} />}
      {error ? <ErrorPanel error={error} retry={readAgain} /> : null}
      {next && (
        <p class="buttons left">
          <button type="button" disabled={busy} onClick={() => readOlder(reading)}>
            {busy ? "Reading" : `Read events before ${count(from)}`}
          </button>
        </p>
      )}
    </>
  );
}

function EntryDrawer({ position, close }: { position: string; close: () => void }) {
  const sequence = Number(position.split(".")[0]);
  const { value, error, reload } = useLoad((signal) => read<Page>(`/api/log?from=${sequence}&to=${sequence}`, signal), [sequence]);
  const entry = value?.events.find((one) => one.position === position);
  useTitle(`Event ${position}${entry?.type ? `: ${entry.type}` : ""}`, 2);
  return (
    <Drawer title={entry?.type ?? `Sequence ${position}`} close={close}>
      {error && !value ? <ErrorPanel error={error} retry={reload} /> : null}
      {!value && !error && <Skeleton />}
      {value && !entry && <Empty title="The log has no such event" />}
      {entry && <Facts entry={entry} />}
      {entry && <StateAt aggregate={entry.aggregate} sequence={entry.sequence} />}
    </Drawer>
  );
}

function Facts({ entry }: { entry: Entry }) {
  const json = JSON.stringify(entry.data, null, 2);
  const [, kind, ...rest] = entry.aggregate.split(".");
  return (
    <section aria-label="Event">
      <dl class="facts">
        <dt>Sequence</dt>
        <dd>{entry.position}</dd>
        <dt>Time</dt>
        <dd>{entry.at && utc(entry.at)}</dd>
        <dt>Aggregate</dt>
        <dd>
          <Link to={`/log/${entry.position}?of=${entry.aggregate}`}>{entry.aggregate}</Link>
          {kind === "task" && (
            <>
              , <Link to={`/tasks/${rest.join(".")}`}>the task</Link>
            </>
          )}
        </dd>
        {entry.version !== null && <Fact name="Version" value={String(entry.version)} />}
        {entry.commit && <Fact name="Commit" value={entry.commit} />}
        <Fact name="By" value={entry.actor ?? "the service"} />
        {entry.correlation && <Fact name="Request" value={entry.correlation} />}
        {entry.causation && <Fact name="Caused by" value={entry.causation} />}
      </dl>
      {entry.problem && <p class="reason">{entry.problem}</p>}
      <h3>
        Data <Copy text={json} what="JSON" />
      </h3>
      <pre class="log" tabIndex={0} aria-label="Data">
        {json}
      </pre>
    </section>
  );
}

function Fact({ name, value }: { name: string; value: string }) {
  return (
    <>
      <dt>{name}</dt>
      <dd>
        <code>{value}</code>
      </dd>
    </>
  );
}

/** The state at a sequence; null where the aggregate was not there yet. */
async function stateOf(aggregate: string, at: number, signal: AbortSignal): Promise<State | null> {
  const before = await read<Page>(`/api/log?aggregate=${aggregate}&to=${at}&limit=1`, signal);
  const last = before.events[0];
  if (last?.problem) throw new Error(`How it was after ${count(last.sequence)} cannot be read: ${last.problem}`);
  return last ? read<State>(`/api/log/state?aggregate=${aggregate}&at=${last.sequence}`, signal) : null;
}

/** How an aggregate was at a sequence, and at those before and after it. */
function StateAt({ aggregate, sequence }: { aggregate: string; sequence: number }) {
  const [at, setAt] = useState(sequence);
  const { value, error, loading, reload } = useLoad((signal) => stateOf(aggregate, at, signal), [aggregate, at]);
  const later = useLoad((signal) => read<Page>(`/api/log?aggregate=${aggregate}&order=oldest&limit=1&from=${(value?.sequence ?? at) + 1}`, signal), [aggregate, value?.sequence]);
  const next = later.value?.events[0]?.sequence;
  const json = value ? JSON.stringify(value.state, null, 2) : "";
  return (
    <section aria-labelledby="state-title">
      <h3 id="state-title">State {json && <Copy text={json} what="JSON" />}</h3>
      <div class="line">
        <label class="line">
          at sequence
          <input
            type="number"
            class="sequence"
            min={1}
            value={at}
            onChange={(event) => event.currentTarget.validity.valid && event.currentTarget.value && setAt(Number(event.currentTarget.value))}
          />
        </label>
        <button type="button" class="small" disabled={!value && !error} onClick={() => setAt(Math.max(1, (value?.sequence ?? at) - 1))}>
          before
        </button>
        <button type="button" class="small" disabled={next === undefined} onClick={() => next !== undefined && setAt(next)}>
          after
        </button>
      </div>
      {error && !value ? <ErrorPanel error={error} retry={reload} /> : null}
      {!value && !error && !loading && <p class="muted">The aggregate did not exist yet.</p>}
      {value && (
        <>
          <p class="muted">
            as {value.events.map((event) => event.type).join(", ")} at {count(value.sequence)} left it
          </p>
          <pre class="log state" tabIndex={0} aria-label="State">
            {json}
          </pre>
        </>
      )}
    </section>
  );
}
