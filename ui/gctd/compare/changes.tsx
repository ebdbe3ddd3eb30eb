// The functions that differ between two analyses: new, worse, fixed, better, moved, gone, not measured.

import { useMemo } from "preact/hooks";
import { Pill } from "../../kit/parts/pill";
import { Link, useQuery, withQuery } from "../../kit/page/router";
import { Empty } from "../../kit/parts/states";
import { type Column, parseSort, sorted, sortText, Table } from "../../kit/parts/table";
import type { Diff, Values } from "../analysis/types";
import { count, score } from "../data/names";
import { isMeasured, stateText } from "../data/risky";
import { type At, type Row, rowsOf, type Status } from "./rows";
import { Sources } from "./sources";

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

const isOf = (status: string) => (row: Row) => row.status === status || (status === "moved" && row.kept.length > 0);

interface Props {
  diff: Diff;
  /** The address of the source of one side on the repository's host, if it is known. */
  addressOf: (side: "from" | "to", at: At) => string | null;
}

export function Changes({ diff, addressOf }: Props) {
  const [opened, open] = useQuery("open");
  const [status, setStatus] = useQuery("status");
  const [text, setText] = useQuery("q");
  const [sortQuery, setSort] = useQuery("sort");
  const all = useMemo(() => rowsOf(diff), [diff]);
  const columns = useMemo(() => columnsOf(addressOf), [diff]);
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
  const shown = all.find((row) => row.key === opened);
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
        <Table label="Functions that changed" rows={rows} keyOf={(row) => row.key} columns={columns} open={opened} sort={sort} onSort={(next) => setSort(sortText(next))} />
      )}
      {shown && <Sources key={shown.key} diff={diff} row={shown} close={() => open("")} />}
    </section>
  );
}

const crap = (values: Values | null) => (!values ? "" : isMeasured(values) ? score(values.crap) : <span title={`${stateText(values.state)}: ${values.reason}`}>–</span>);

const columnsOf = (addressOf: Props["addressOf"]): readonly Column<Row>[] => [
  {
    id: "status",
    title: "Change",
    width: "156px",
    by: (row) => STATUSES.indexOf(row.status),
    cell: ({ status, kept }) => <Pill state={TONES[status]} word={status === "moved" ? (kept[0] ?? status) : (WORDS[status] ?? status)} />,
    phone: "first",
  },
  {
    id: "function",
    title: "Function",
    by: (row) => row.name,
    cell: ({ name, key }) => (
      <Link to={withQuery({ open: key })} class="name" data-row title="The source of both sides">
        {name}
      </Link>
    ),
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
  { id: "why", title: "Why", width: "310px", cell: (row) => <Why row={row} />, phone: "hidden" },
  {
    id: "place",
    title: "Place",
    by: ({ before, after }) => `${(after ?? before)?.file ?? ""} ${String((after ?? before)?.line ?? 0).padStart(7, "0")}`,
    cell: (row) => <Places row={row} address={row.after ? addressOf("to", row.after) : row.before && addressOf("from", row.before)} />,
    phone: "hidden",
  },
];

/** The part of the value that changed: complexity, coverage, or how the function was found again. */
function Why({ row: { was, is, kept, similarity } }: { row: Row }) {
  const said: string[] = [];
  if (was && is) {
    if (was.cyclomatic !== is.cyclomatic) said.push(`complexity ${was.cyclomatic} → ${is.cyclomatic}`);
    if (was.coverage !== is.coverage || isMeasured(was) !== isMeasured(is)) said.push(`coverage ${percent(was)} → ${percent(is)}`);
  }
  said.push(...kept);
  if (similarity !== null) said.push(`${Math.round(similarity * 100)} % equal`);
  const text = said.join(", ");
  return <span title={text}>{text}</span>;
}

const percent = (values: Values): string => (!isMeasured(values) ? stateText(values.state) : values.coverage === null ? "not known" : `${values.coverage.toFixed(0)} %`);

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
