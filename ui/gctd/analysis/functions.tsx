// The functions of an analysis: the score of each, and the coverage with which it is not risky any more.

import { useMemo } from "preact/hooks";
import { Link, useQuery } from "../../kit/page/router";
import { type Column, parseSort, sorted, sortText, Table } from "../../kit/parts/table";
import { isMeasured, isRisky, scoreText, stateText } from "../data/risky";
import type { FunctionEntry } from "../data/types";
import { coverageNeeded, sourceOf } from "./risk";

interface Row {
  key: string;
  entry: FunctionEntry;
  needed: number | null;
}

interface Props {
  entries: readonly FunctionEntry[];
  threshold: number;
  source: string | null;
  /** The address of a function's page. */
  at: (entry: FunctionEntry) => string;
}

const percent = (value: number): string => `${value.toFixed(1)} %`;

export function Functions({ entries, threshold, source, at }: Props) {
  const [sortQuery, setSort] = useQuery("sort");
  const rows = useMemo(() => {
    const seen = new Map<string, number>();
    return entries.map((entry): Row => {
      const name = `${entry.file}:${entry.line}:${entry.function}`;
      const times = seen.get(name) ?? 0;
      seen.set(name, times + 1);
      return { key: times ? `${name}#${times}` : name, entry, needed: coverageNeeded(entry.cyclomatic, threshold) };
    });
  }, [entries, threshold]);
  const columns = useMemo(() => columnsOf(threshold, source, at), [threshold, source, at]);
  const sort = parseSort(sortQuery);
  const shown = useMemo(() => sorted(rows, columns, sort), [rows, columns, sortQuery]);
  return <Table label="Functions" rows={shown} keyOf={(row) => row.key} columns={columns} sort={sort} onSort={(next) => setSort(sortText(next))} />;
}

function columnsOf(threshold: number, source: string | null, at: Props["at"]): readonly Column<Row>[] {
  const isOver = ({ entry }: Row) => isRisky(entry, threshold);
  return [
    {
      id: "function",
      title: "Function",
      by: ({ entry }) => entry.function,
      cell: ({ entry }) => <Name name={entry.function} to={at(entry)} />,
      phone: "first",
    },
    {
      id: "crap",
      title: "CRAP",
      width: "116px",
      align: "right",
      by: ({ entry }) => (isMeasured(entry) ? entry.crap : -1),
      cell: (row) => <span class={isOver(row) ? "bad strong" : ""}>{scoreText(row.entry)}</span>,
      phone: "first",
    },
    { id: "complexity", title: "Complexity", width: "108px", align: "right", by: ({ entry }) => entry.cyclomatic, cell: ({ entry }) => entry.cyclomatic, phone: "hidden" },
    {
      id: "coverage",
      title: "Coverage",
      width: "100px",
      align: "right",
      by: ({ entry }) => (isMeasured(entry) ? (entry.coverage ?? -1) : -2),
      cell: ({ entry }) =>
        isMeasured(entry) ? entry.coverage === null ? "not known" : percent(entry.coverage) : <span title={`${stateText(entry.state)}: ${entry.reason ?? ""}`}>not measured</span>,
      phone: "second",
    },
    {
      id: "needed",
      title: "What helps",
      width: "140px",
      align: "right",
      by: (row) => (isOver(row) ? (row.needed ?? 101) : -1),
      cell: (row) => (!isMeasured(row.entry) ? stateText(row.entry.state) : !isOver(row) ? "" : row.needed === null ? "split it" : `cover ${percent(Math.ceil(row.needed * 10) / 10)}`),
      phone: "hidden",
    },
    {
      id: "place",
      title: "Place",
      by: ({ entry }) => `${entry.file} ${String(entry.line).padStart(7, "0")}`,
      cell: ({ entry }) => <Place file={entry.file} line={entry.line} address={sourceOf(source, entry.file, entry.line)} />,
      phone: "second",
    },
  ];
}

/** A function's name, as a link to its page. */
export function Name({ name, to }: { name: string; to: string }) {
  return (
    <Link class="name" data-row to={to} title={name}>
      {name}
    </Link>
  );
}

/** The place of a function, with a link to the repository's host if its pages are known. */
export function Place({ file, line, address }: { file: string; line: number; address: string | null }) {
  const text = `${file}:${line}`;
  const shown = <code title={text}>{text}</code>;
  return address ? (
    <a href={address} target="_blank" rel="noreferrer" title="On the repository's host, at the commit that was analysed">
      {shown}
    </a>
  ) : (
    shown
  );
}
