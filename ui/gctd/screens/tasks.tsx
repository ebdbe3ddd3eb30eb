// The list of tasks, live, with the open task next to it.

import { useMemo, useRef, useState } from "preact/hooks";
import { Cell, useCell } from "../../kit/data/cell";
import { useHeld } from "../../kit/data/held";
import { useKeys } from "../../kit/page/keys";
import { Pill } from "../../kit/parts/pill";
import { go, Link, place, useQuery, withQuery } from "../../kit/page/router";
import { Command, Empty, ErrorPanel, Skeleton } from "../../kit/parts/states";
import { type Column, parseSort, sorted, sortText, Table } from "../../kit/parts/table";
import { Ago, Took } from "../../kit/parts/time";
import { useTitle } from "../../kit/page/title";
import { cancel, canCancel, canRetry, hideAll, retry, seen } from "../data/actions";
import { filterOf, NAMES, valueOf, withValue } from "../data/filter";
import { count, plural, pointOf, projectName, score, stageOf } from "../data/names";
import { resultOf, taskAt } from "../data/places";
import type { ScreenProps } from "../screen";
import { scoreOf, scores } from "../data/scores";
import { MOST, refresh, tasks, type Known, type TaskList } from "../data/tasks";
import { STATUSES, type Task } from "../data/types";
import { TaskDrawer } from "./task";

const TINT = 700;
const TERMINAL = new Set(["completed", "failed", "expired"]);
const keyOf = (known: Known): string => known.task.id;
const idNumber = (task: Task): number => Number(task.id.slice(5));

const COLUMNS: readonly Column<Known>[] = [
  { id: "status", title: "Status", width: "124px", by: ({ task }) => STATUSES.indexOf(task.status), cell: ({ task }) => (
      <Link to={withQuery({}, taskAt(task.id))} title="Attempts, stages and log" aria-label={`${task.status}: open the task`}>
        <Pill state={task.status} />
      </Link>
    ), phone: "first" },
  {
    id: "project",
    title: "Project",
    by: ({ task }) => projectName(task.repo_url, task.project),
    cell: ({ task }) => (
      <Link to={task.status === "completed" && task.analysis_id ? resultOf(task) : withQuery({}, taskAt(task.id))} data-row title={task.repo_url} class="name">
        {projectName(task.repo_url, task.project)}
      </Link>
    ),
    phone: "first",
  },
  { id: "ref", title: "Ref", width: "124px", by: ({ task }) => task.ref, cell: ({ task }) => <code title={[task.ref, task.commit_sha].join(" ")}>{pointOf(task)}</code> },
  {
    id: "stage",
    title: "Stage or reason",
    cell: ({ task }) => <span title={whatAbout(task)}>{whatAbout(task)}</span>,
  },
  {
    id: "attempt",
    title: "Attempt",
    width: "80px",
    align: "right",
    by: ({ task }) => task.attempt,
    cell: ({ task }) => `${task.attempt}/${task.max_attempts}`,
    phone: "hidden",
  },
  { id: "worker", title: "Worker", width: "120px", by: ({ task }) => task.worker, cell: ({ task }) => task.worker, phone: "hidden" },
  {
    id: "took",
    title: "Took",
    width: "84px",
    align: "right",
    by: ({ task }) => (TERMINAL.has(task.status) ? Date.parse(task.updated_at) : Date.now()) - Date.parse(task.created_at),
    cell: ({ task }) => <Took from={task.created_at} to={TERMINAL.has(task.status) ? task.updated_at : null} />,
    phone: "hidden",
  },
  {
    id: "score",
    title: "CRAP",
    width: "76px",
    align: "right",
    by: ({ task }) => scoreOf(task)?.average ?? -1,
    cell: ({ task }) => <Score task={task} />,
    phone: "first",
  },
  { id: "created", title: "Age", width: "64px", align: "right", by: ({ task }) => -idNumber(task), cell: ({ task }) => <Ago at={task.created_at} /> },
];

function whatAbout(task: Task): string {
  if (task.status === "running") return stageOf(task);
  if (task.status === "failed" || task.status === "expired") return task.reason;
  return task.status === "pending" || task.status === "queued" ? task.reason : "";
}

function Score({ task }: { task: Task }) {
  useCell(scores);
  const found = scoreOf(task);
  if (task.status !== "completed" || !found) return null;
  return (
    <Link to={resultOf(task)} title={`average CRAP; ${found.exceeded} of ${found.total_funcs} functions risky`}>
      {score(found.average)}
    </Link>
  );
}

/** The list as it was when the user paused it; null while it is live. */
const paused = new Cell<TaskList | null>(null);

function pause(): void {
  paused.set(paused.value ? null : { ...tasks.value, byId: new Map(tasks.value.byId) });
}

export default function Tasks({ params }: ScreenProps) {
  const [filter, setFilter] = useQuery("q");
  const [sortQuery, setSort] = useQuery("sort");
  const [checked, setChecked] = useState<ReadonlySet<string>>(new Set());
  const [busy, setBusy] = useState(false);
  const live = useCell(tasks);
  const list = useCell(paused) ?? live;
  useCell(scores);
  const sort = parseSort(sortQuery);
  useTitle(filter && `Tasks: ${filter}`, 1);
  const rows = useMemo(() => {
    const wanted = filterOf(filter);
    const found: Known[] = [];
    for (const id of list.order) {
      const known = list.byId.get(id);
      if (known && wanted(known.task)) found.push(known);
    }
    return sorted(found, COLUMNS, sort);
  }, [list, filter, sortQuery]);
  const held = useHeld(rows, keyOf, (id) => list.byId.get(id), busy || checked.size > 0, `${filter} ${sortQuery}`);
  const chosen = [...checked].map((id) => list.byId.get(id)?.task).filter((task): task is Task => task !== undefined);
  const focusedTask = () => list.byId.get(document.activeElement?.closest<HTMLElement>("tr[data-key]")?.dataset["key"] ?? params["id"] ?? "")?.task;
  const on = (action: (tasks: readonly Task[]) => unknown) => () => {
    const wanted = chosen.length ? chosen : [focusedTask()].filter((task): task is Task => task !== undefined);
    if (wanted.length === 0) return false;
    void action(wanted);
    return true;
  };
  const search = useRef<HTMLInputElement>(null);
  useKeys([
    { keys: "/", does: "filter", run: () => search.current?.focus() },
    { keys: "p", does: "pause or resume the list", run: pause },
    { keys: "r", does: "retry the tasks selected, or the row's", run: on(retry) },
    { keys: "c", does: "cancel the tasks selected, or the row's", run: on(cancel) },
    { keys: "s", does: "mark as seen", run: on((wanted) => markSeen(wanted)) },
    { keys: "n", does: "show new tasks", run: () => held.waiting > 0 && held.release() },
    ...(checked.size ? [{ keys: "Escape", does: "select none", run: () => setChecked(new Set()) }] : []),
  ]);
  const markSeen = (wanted: readonly Task[]) => {
    setChecked(new Set());
    seen(wanted);
    held.release(); // they leave by the user's own wish
  };
  const check = (id: string) => {
    const next = new Set(checked);
    if (!next.delete(id)) next.add(id);
    setChecked(next);
  };
  const close = () => go(withQuery({}, "/tasks"));
  return (
    <div class="page full with-rail">
      <h1 class="hidden-text">Tasks</h1>
      <Rail list={list} filter={filter} setFilter={setFilter} />
      <section class="list" aria-label="Tasks">
        <div class="toolbar">
          <input
            ref={search}
            type="search"
            aria-label="Filter tasks"
            aria-describedby="filter-hint"
            placeholder="filter: status:failed repo:x word"
            value={filter}
            spellcheck={false}
            autocomplete="off"
            onInput={(event) => setFilter(event.currentTarget.value, { replace: true })}
            onKeyDown={(event) => event.key === "Escape" && event.currentTarget.blur()}
          />
          <span id="filter-hint" class="hidden-text">
            Words, or {NAMES.map((name) => `${name}:`).join(", ")}
          </span>
          <button type="button" aria-pressed={paused.value !== null} onClick={pause} title="Pause (p)">
            {paused.value ? "Resume" : "Pause"}
          </button>
          <button type="button" onClick={() => void hideAll(held.shown.map(({ task }) => task))} title="Hide the tasks of this list that have ended from the lists of everybody">
            Hide all
          </button>
        </div>
        <Bulk chosen={chosen} clear={() => setChecked(new Set())} markSeen={markSeen} />
        {held.waiting > 0 && (
          <p class="news">
            <button type="button" class="primary small" onClick={held.release}>
              {held.waiting} new
            </button>
          </p>
        )}
        {live.error ? <ErrorPanel error={live.error} retry={() => void refresh()} /> : null}
        {list.isCut && <p class="muted">These are the newest {count(MOST)} tasks: older ones are neither in the list nor in its figures.</p>}
        {!live.read && !live.error && <Skeleton lines={8} />}
        {live.read && held.shown.length === 0 && <Nothing filter={filter} any={list.order.length > 0} clear={() => setFilter("")} />}
        {held.shown.length > 0 && (
          <Table
            label="Tasks"
            rows={held.shown}
            keyOf={keyOf}
            columns={COLUMNS}
            sort={sort}
            onSort={(next) => setSort(sortText(next))}
            open={params["id"] ?? null}
            checked={checked}
            onCheck={check}
            rowClass={(known) => `${Date.now() - known.changed < TINT ? `tint-${known.sequence % 2}` : ""} ${known.task.seen ? "is-seen" : ""}`}
            onBusy={setBusy}
          />
        )}
      </section>
      {params["id"] && <TaskDrawer key={params["id"]} id={params["id"]} close={close} />}
    </div>
  );
}

function Rail({ list, filter, setFilter }: { list: TaskList; filter: string; setFilter: (filter: string) => void }) {
  const chosen = valueOf(filter, "status");
  const all = STATUSES.reduce((sum, status) => sum + list.counts[status], 0);
  const shown = (figure: number) => (list.read ? count(figure) : "–");
  return (
    <nav class="rail" aria-label="Tasks by status">
      <button type="button" aria-pressed={chosen === ""} onClick={() => setFilter(withValue(filter, "status", ""))}>
        <span>all</span> <span class="number">{shown(all)}</span>
      </button>
      {STATUSES.map((status) => (
        <button
          key={status}
          type="button"
          aria-pressed={chosen === status}
          onClick={() => setFilter(withValue(filter, "status", chosen === status ? "" : status))}
        >
          <Pill state={status} /> <span class="number">{shown(list.counts[status])}</span>
        </button>
      ))}
    </nav>
  );
}

function Bulk({ chosen, clear, markSeen }: { chosen: readonly Task[]; clear: () => void; markSeen: (tasks: readonly Task[]) => void }) {
  if (chosen.length === 0) return null;
  return (
    <div class="bulk" role="region" aria-label="Selected tasks">
      <strong>{plural(chosen.length, "task")} selected</strong>
      <button type="button" disabled={!chosen.some(canCancel)} onClick={() => void cancel(chosen)}>
        Cancel
      </button>
      <button type="button" disabled={!chosen.some(canRetry)} onClick={() => void retry(chosen)}>
        Retry
      </button>
      <button type="button" onClick={() => markSeen(chosen)}>
        Seen
      </button>
      <button type="button" onClick={clear}>
        Select none
      </button>
    </div>
  );
}

function Nothing({ filter, any, clear }: { filter: string; any: boolean; clear: () => void }) {
  if (filter) {
    return (
      <Empty title={`No tasks match ${filter}`}>
        <button type="button" onClick={clear}>
          Clear the filter
        </button>
      </Empty>
    );
  }
  if (any) {
    return (
      <Empty title="All tasks are marked as seen">
        <p>
          <Link to={`${place.value.path}?q=is:seen`}>Show them</Link>
        </p>
      </Empty>
    );
  }
  return (
    <Empty title="No task yet">
      <p>Register a repository and analyse it:</p>
      <Command text="gctd repo add https://github.com/owner/name" />
      <Command text="gctd repo analyze https://github.com/owner/name" />
    </Empty>
  );
}
