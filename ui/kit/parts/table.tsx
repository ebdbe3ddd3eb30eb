// A table of any length: only the rows in sight are in the document. Rows have one height.

import { type ComponentChildren, options, type RefObject } from "preact";
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { useKeys } from "../page/keys";

export interface Column<T> {
  id: string;
  title: string;
  cell: (row: T) => ComponentChildren;
  /** The key for sorting by the column, which cannot be sorted without one. */
  by?: (row: T) => number | string;
  /** CSS width, such as `120px`; the columns without one share the rest. */
  width?: string;
  align?: "right";
  /** On a phone a row has two lines, without the less important columns. */
  phone?: "first" | "second" | "hidden";
}

interface Sort {
  id: string;
  descending: boolean;
}

interface Props<T> {
  label: string;
  rows: readonly T[];
  keyOf: (row: T) => string;
  columns: readonly Column<T>[];
  sort?: Sort | null;
  onSort?: (sort: Sort | null) => void;
  /** Opened by Enter or a click on the row's own button or link, which has the attribute `data-row`. */
  open?: string | null;
  checked?: ReadonlySet<string>;
  onCheck?: (key: string) => void;
  rowClass?: (row: T) => string;
  /** Called with whether the user is at the rows: with the pointer or the keyboard, or scrolled down. */
  onBusy?: (busy: boolean) => void;
}

const HEIGHT = 34;
const PHONE_HEIGHT = 60;
const PHONE = "(max-width: 600px)";
const AROUND = 8;
/** The largest number of rows on paper. */
const PRINTED = 500;

/** Rows by a column, in the order in which they came if they are equal. */
export function sorted<T>(rows: readonly T[], columns: readonly Column<T>[], sort: Sort | null): readonly T[] {
  const by = sort && columns.find((column) => column.id === sort.id)?.by;
  if (!sort || !by) return rows;
  const sign = sort.descending ? -1 : 1;
  const keyed = rows.map((row) => ({ row, key: by(row) }));
  keyed.sort((a, b) => (a.key < b.key ? -sign : a.key > b.key ? sign : 0));
  return keyed.map(({ row }) => row);
}

/** `crap`, or `-crap` for the largest first, as in an address. */
export function parseSort(text: string): Sort | null {
  return text ? { id: text.replace(/^-/, ""), descending: text.startsWith("-") } : null;
}

export function sortText(sort: Sort | null): string {
  return sort ? `${sort.descending ? "-" : ""}${sort.id}` : "";
}

const CHECK = "36px";
/** The least width of a column without a width. A table that is wider than its box scrolls. */
const LEAST = "120px";

export function Table<T>({ label, rows, keyOf, columns, sort = null, onSort, open, checked, onCheck, rowClass, onBusy }: Props<T>) {
  const box = useRef<HTMLDivElement>(null);
  const { top, height, onScroll } = useWindowOf(box);
  const isPhone = useMedia(PHONE);
  const rowHeight = isPhone ? PHONE_HEIGHT : HEIGHT;
  const isPrinted = usePrinting();
  const first = isPrinted ? 0 : Math.max(0, Math.min(rows.length, Math.floor(top / rowHeight)) - AROUND);
  const last = isPrinted ? Math.min(rows.length, PRINTED) : Math.min(rows.length, Math.ceil((top + height) / rowHeight) + AROUND);
  useRowKeys({ box, rows, keyOf, rowHeight, onCheck, isPhone });
  useBusy(box, top > 0, onBusy);
  const shown = rows.slice(first, last);
  const spans = columns.length + (onCheck ? 1 : 0);
  const least = [...(onCheck ? [CHECK] : []), ...columns.map(({ width }) => width ?? LEAST)].join(" + ");
  return (
    <div class="table-box" ref={box} onScroll={onScroll}>
      <table role="table" style={{ "--least": `calc(${least})` }} aria-label={label} aria-rowcount={rows.length + 1}>
        <colgroup>
          {onCheck && <col style={{ width: CHECK }} />}
          {columns.map((column) => (
            <col key={column.id} style={column.width ? { width: column.width } : {}} />
          ))}
        </colgroup>
        <thead role="rowgroup">
          <tr role="row" aria-rowindex={1}>
            {onCheck && (
              <th role="columnheader" scope="col">
                <span class="hidden-text">Selected</span>
              </th>
            )}
            {columns.map((column) => (
              <Heading key={column.id} column={column} sort={sort} onSort={onSort} />
            ))}
          </tr>
        </thead>
        <tbody role="rowgroup">
          {!isPrinted && <Gap height={first * rowHeight} spans={spans} />}
          {shown.map((row, index) => {
            const key = keyOf(row);
            return (
              <tr
                key={key}
                role="row"
                data-key={key}
                aria-rowindex={first + index + 2}
                class={`${rowClass?.(row) ?? ""}${open === key ? " open" : ""}`}
              >
                {onCheck && (
                  <td role="cell" class="check">
                    <input type="checkbox" aria-label={`Select ${key}`} checked={checked?.has(key) ?? false} onChange={() => onCheck(key)} />
                  </td>
                )}
                {columns.map((column) => (
                  <td key={column.id} role="cell" class={`${column.align ?? ""} phone-${column.phone ?? "second"}`}>
                    {column.cell(row)}
                  </td>
                ))}
              </tr>
            );
          })}
          {!isPrinted && <Gap height={(rows.length - last) * rowHeight} spans={spans} />}
        </tbody>
      </table>
      {isPrinted && last < rows.length && <p>The first {last.toLocaleString("en")} of {rows.length.toLocaleString("en")} rows.</p>}
    </div>
  );
}

function Heading<T>({ column, sort, onSort }: { column: Column<T>; sort: Sort | null; onSort: Props<T>["onSort"] }) {
  const isSorted = sort?.id === column.id;
  const classes = `${column.align ?? ""} phone-${column.phone ?? "second"}`;
  if (!column.by || !onSort) {
    return (
      <th role="columnheader" scope="col" class={classes}>
        {column.title}
      </th>
    );
  }
  const turn = () => {
    if (!isSorted) onSort({ id: column.id, descending: true });
    else onSort(sort.descending ? { id: column.id, descending: false } : null);
  };
  return (
    <th role="columnheader" scope="col" class={classes} aria-sort={isSorted ? (sort.descending ? "descending" : "ascending") : "none"}>
      <button type="button" onClick={turn}>
        {column.title}
        <span aria-hidden="true" class="sort">
          {isSorted ? (sort.descending ? "▾" : "▴") : ""}
        </span>
      </button>
    </th>
  );
}

/** The room of the rows that are not in the document. */
function Gap({ height, spans }: { height: number; spans: number }) {
  if (height <= 0) return null;
  return (
    <tr class="gap" aria-hidden="true">
      <td colSpan={spans} style={{ height: `${height}px` }} />
    </tr>
  );
}

function useWindowOf(box: RefObject<HTMLDivElement | null>) {
  const [seen, setSeen] = useState({ top: 0, height: 800 });
  const measure = () => {
    const element = box.current;
    if (element) {
      const next = { top: element.scrollTop, height: element.clientHeight };
      setSeen((before) => (before.top === next.top && before.height === next.height ? before : next));
    }
  };
  useLayoutEffect(() => {
    measure();
    const observer = new ResizeObserver(measure);
    if (box.current) observer.observe(box.current);
    return () => observer.disconnect();
  }, []);
  return { ...seen, onScroll: measure };
}

export function useMedia(query: string): boolean {
  const media = useMemo(() => matchMedia(query), [query]);
  const [holds, setHolds] = useState(media.matches);
  useEffect(() => {
    const change = () => setHolds(media.matches);
    media.addEventListener("change", change);
    return () => media.removeEventListener("change", change);
  }, [media]);
  return holds;
}

/** Whether the page is being printed: a browser takes what is drawn when its event is over, so it is drawn within the event. */
function usePrinting(): boolean {
  const [isPrinted, setPrinted] = useState(false);
  useEffect(() => {
    const turn = ({ type }: Event) => {
      const usual = options.debounceRendering;
      options.debounceRendering = (draw) => draw();
      setPrinted(type === "beforeprint");
      if (usual) options.debounceRendering = usual;
      else delete options.debounceRendering;
    };
    addEventListener("beforeprint", turn);
    addEventListener("afterprint", turn);
    return () => {
      removeEventListener("beforeprint", turn);
      removeEventListener("afterprint", turn);
    };
  }, []);
  return isPrinted;
}

interface RowKeys<T> {
  box: RefObject<HTMLDivElement | null>;
  rows: readonly T[];
  keyOf: (row: T) => string;
  rowHeight: number;
  onCheck: Props<T>["onCheck"];
  isPhone: boolean;
}

/** j and k go from row to row, x selects. */
function useRowKeys<T>({ box, rows, keyOf, rowHeight, onCheck, isPhone }: RowKeys<T>): void {
  const current = useRef("");
  const wanted = useRef("");
  useLayoutEffect(() => {
    if (!wanted.current) return;
    const row = box.current?.querySelector<HTMLElement>(`tr[data-key="${CSS.escape(wanted.current)}"] [data-row]`);
    if (!row) return;
    wanted.current = "";
    row.focus({ preventScroll: true });
  });
  const focused = () => document.activeElement?.closest<HTMLElement>("tr[data-key]")?.dataset["key"] ?? current.current;
  const [, again] = useState(0);
  const move = (by: number) => {
    const element = box.current;
    if (!element || rows.length === 0) return false;
    const at = rows.findIndex((row) => keyOf(row) === focused());
    const index = at < 0 ? 0 : Math.max(0, Math.min(rows.length - 1, at + by));
    const row = rows[index];
    if (row === undefined) return false;
    current.current = wanted.current = keyOf(row);
    const head = isPhone ? 0 : rowHeight;
    const top = index * rowHeight;
    if (top < element.scrollTop) element.scrollTop = top;
    else if (top + rowHeight + head > element.scrollTop + element.clientHeight) {
      element.scrollTop = top + rowHeight + head - element.clientHeight;
    }
    again((count) => count + 1);
    return true;
  };
  useKeys([
    { keys: "j", does: "next row", run: () => move(1) },
    { keys: "k", does: "row before", run: () => move(-1) },
    ...(onCheck
      ? [
          {
            keys: "x",
            does: "select the row",
            run: () => {
              const key = focused();
              if (!rows.some((row) => keyOf(row) === key)) return false;
              onCheck(key);
              return true;
            },
          },
        ]
      : []),
  ]);
}

function useBusy(box: RefObject<HTMLDivElement | null>, scrolled: boolean, onBusy: Props<unknown>["onBusy"]): void {
  const [near, setNear] = useState(false);
  useEffect(() => {
    const body = box.current?.querySelector("tbody");
    if (!body) return;
    const come = () => setNear(true); // at once: a button that is about to be pressed must not move away
    const go = () => setTimeout(() => setNear(body.matches(":hover") || body.contains(document.activeElement)));
    const listeners = { pointerenter: come, focusin: come, pointerleave: go, focusout: go };
    for (const [name, listener] of Object.entries(listeners)) body.addEventListener(name, listener);
    return () => {
      for (const [name, listener] of Object.entries(listeners)) body.removeEventListener(name, listener);
    };
  }, []);
  const busy = near || scrolled;
  useLayoutEffect(() => onBusy?.(busy), [busy]);
  useEffect(() => () => onBusy?.(false), []);
}
