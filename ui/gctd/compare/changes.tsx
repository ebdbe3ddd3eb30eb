// The functions that differ between two analyses: new, worse, fixed, better, moved, gone, not measured.

import { useMemo } from "preact/hooks";
import { Pill } from "../../kit/parts/pill";
import { useQuery } from "../../kit/page/router";
import { Empty } from "../../kit/parts/states";
import { type Column, parseSort, sorted, sortText, Table } from "../../kit/parts/table";
import { Name } from "../analysis/functions";
import type { Change, Diff, Values } from "../analysis/types";
import { count, score } from "../data/names";
import { functionAt, keyOf } from "../data/places";

type Status = Change["status"] | "moved";

const STATUSES: readonly Status[] = ["new", "worse", "fixed", "better", "moved", "gone", "unmeasured", "measured"];
/** States that are shown only if there are such functions. */
const RARE: readonly Status[] = ["unmeasured", "measured"];
/** States of functions whose values are equal, or cannot be compared. */
const NOT_COMPARED: readonly Status[] = ["moved", "unmeasured", "measured"];
const WORDS: Partial<Record<Status, string>> = { unmeasured: "not measured", measured: "measured now" };
const TONES: Record<Status, string> = {
  new: "queued",
  worse: "failed",
  fixed: "completed",
  better: "completed",
  moved: "pending",
  gone: "gone",
  unmeasured: "expired",
  measured: "queued",
};

/** The place of a function in one of the analyses. */
export interface At {
  file: string;
  line: number;
}

/** A row of the table: `before` and `after` are its places, `was` and `is` its values if they differ. */
export interface Row {
  key: string;
  status: Status;
  name: string;
  before: At | null;
  after: At | null;
  was: Values | null;
  is: Values | null;
  delta: number;
  kept: readonly string[];
  similarity: number | null;
}

/** Changed functions first, the largest change first, then functions that moved or have another name and kept their values. */
export function rowsOf({ functions, kept }: Diff): Row[] {
  const rows = functions.map((change): Row => {
    const { status, function: name, before, after } = change;
    return { key: `${status} ${change.file}:${change.line}:${name}`, status, name, before, after, was: before, is: after, delta: change.delta, kept: change.kept, similarity: change.similarity };
  });
  const changed = new Set(rows.map(({ name, after }) => (after ? `${after.file}:${after.line}:${name}` : "")));
  for (const each of kept) {
    if (changed.has(`${each.to.file}:${each.to.line}:${each.to.function}`)) continue;
    const name = each.to.function;
    rows.push({ key: `moved ${each.to.file}:${each.to.line}:${name}`, status: "moved", name, before: each.from, after: each.to, was: null, is: null, delta: 0, kept: each.kept, similarity: each.similarity });
  }
  return rows;
}

const isOf = (status: string) => (row: Row) => row.status === status || (status === "moved" && row.kept.length > 0);

interface Props {
  diff: Diff;
  /** The address of the source of one side, if it is known. */
  addressOf: (side: "from" | "to", at: At) => string | null;
}

export function Changes({ diff, addressOf }: Props) {
  const [status, setStatus] = useQuery("status");
  const [text, setText] = useQuery("q");
  const [sortQuery, setSort] = useQuery("sort");
  const all = useMemo(() => rowsOf(diff), [diff]);
  const columns = useMemo(() => columnsOf(diff, addressOf), [diff]);
  const sort = parseSort(sortQuery);
  const rows = useMemo(() => {
    const words = text.toLowerCase().split(/\s+/).filter(Boolean);
    const chosen = all.filter((row) => {
      if (status && !isOf(status)(row)) return false;
      const searched = words.length ? `${row.name} ${row.after?.file ?? ""} ${row.before?.file ?? ""}`.toLowerCase() : "";
      return words.every((word) => searched.includes(word));
    });
    return sorted(chosen, columns, sort);
  }, [all, status, text, sortQuery, columns]);
  const times = (name: Status) => all.filter(isOf(name)).length;
  return (
    <section class="list compare" aria-label="Functions" id="functions">
      <div class="toolbar">
        <h2>Functions</h2>
        <input
          type="search"
          aria-label="Filter functions"
          placeholder="filter: words of function or file"
          value={text}
          spellcheck={false}
          autocomplete="off"
          onInput={(event) => setText(event.currentTarget.value, { replace: true })}
        />
        <span class="muted" role="status">
          {count(rows.length)} shown, {count(diff.counts.unchanged ?? 0)} with equal values
        </span>
      </div>
      <div class="line no-print" role="group" aria-label="Change">
        <button type="button" class="small" aria-pressed={status === ""} onClick={() => setStatus("")}>
          all {count(all.length)}
        </button>
        {STATUSES.filter((name) => !RARE.includes(name) || times(name) > 0).map((name) => (
          <button key={name} type="button" class="small" aria-pressed={status === name} onClick={() => setStatus(status === name ? "" : name)}>
            {WORDS[name] ?? name} {count(times(name))}
          </button>
        ))}
      </div>
      {rows.length === 0 ? (
        <Empty title={all.length === 0 ? "No function changed" : "No function matches"} />
      ) : (
        <Table label="Functions that changed" rows={rows} keyOf={(row) => row.key} columns={columns} sort={sort} onSort={(next) => setSort(sortText(next))} />
      )}
    </section>
  );
}

function columnsOf(diff: Diff, addressOf: Props["addressOf"]): readonly Column<Row>[] {
  const crap = (values: Values | null) => (values ? score(values.crap) : "");
  return [
    {
      id: "status",
      title: "Change",
      width: "132px",
      by: (row) => STATUSES.indexOf(row.status),
      cell: ({ status, kept }) => <Pill state={TONES[status]} word={status === "moved" ? (kept[0] ?? status) : (WORDS[status] ?? status)} />,
      phone: "first",
    },
    {
      id: "function",
      title: "Function",
      by: (row) => row.name,
      cell: ({ name, after, before }) => <Name name={name} to={functionAt(diff.id, keyOf({ file: (after ?? before)?.file ?? "", function: name }), (after ? diff.to : diff.from).task_id)} />,
      phone: "first",
    },
    { id: "before", title: "Before", width: "88px", align: "right", by: ({ was }) => was?.crap ?? -1, cell: ({ was }) => crap(was), phone: "second" },
    { id: "after", title: "Now", width: "88px", align: "right", by: ({ is }) => is?.crap ?? -1, cell: ({ is }) => crap(is), phone: "second" },
    {
      id: "delta",
      title: "By",
      width: "96px",
      align: "right",
      by: (row) => row.delta,
      cell: ({ status, delta }) => (NOT_COMPARED.includes(status) ? "" : <span class={delta > 0 ? "bad" : "good"}>{`${delta > 0 ? "+" : "−"}${score(Math.abs(delta))}`}</span>),
      phone: "second",
    },
    { id: "why", title: "Why", width: "180px", cell: (row) => <Why row={row} />, phone: "hidden" },
    {
      id: "place",
      title: "Place",
      by: ({ before, after }) => `${(after ?? before)?.file ?? ""} ${String((after ?? before)?.line ?? 0).padStart(7, "0")}`,
      cell: (row) => <Places row={row} address={row.after ? addressOf("to", row.after) : row.before && addressOf("from", row.before)} />,
      phone: "hidden",
    },
  ];
}

/** The part of the value that changed: complexity, coverage, or how the function was found again. */
function Why({ row: { was, is, kept, similarity } }: { row: Row }) {
  const said: string[] = [];
  if (was && is) {
    if (was.cyclomatic !== is.cyclomatic) said.push(`complexity ${was.cyclomatic} → ${is.cyclomatic}`);
    if (was.coverage !== is.coverage) said.push(`coverage ${percent(was)} → ${percent(is)}`);
  }
  said.push(...kept);
  if (similarity !== null) said.push(`${Math.round(similarity * 100)} % equal`);
  const text = said.join(", ");
  return <span title={text}>{text}</span>;
}

const percent = ({ coverage, state }: Values): string => (coverage === null ? state.replaceAll("_", " ") : `${coverage.toFixed(0)} %`);

/** The present place; of a function that moved to another file both. */
function Places({ row: { before, after }, address }: { row: Row; address: string | null }) {
  const at = after ?? before;
  if (!at) return null;
  const text = before && after && before.file !== after.file ? `${before.file} → ${after.file}:${after.line}` : `${at.file}:${at.line}`;
  const shown = <code title={text}>{text}</code>;
  return address ? (
    <a href={address} target="_blank" rel="noreferrer" title="On the repository's host, at the commit that was analysed">
      {shown}
    </a>
  ) : (
    shown
  );
}
