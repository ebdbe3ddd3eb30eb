// The rows of a comparison: functions that changed, and functions that moved and kept their values.

import type { Change, Diff, Values } from "../analysis/types";

export type Status = Change["status"] | "moved";

/** The place of a function in one of the analyses. */
export interface At {
  /** Names the function in the address of its page, in that analysis. */
  key: string;
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
  const placeOf = (at: Omit<At, "key">, name: string): string => `${at.file}:${at.line}:${name}`;
  const rows = functions.map((change): Row => {
    const { status, function: name, before, after } = change;
    return { key: `${status} ${placeOf(change, name)}`, status, name, before, after, was: before, is: after, delta: change.delta, kept: change.kept, similarity: change.similarity };
  });
  const changed = new Set(rows.map(({ name, after }) => (after ? placeOf(after, name) : "")));
  for (const each of kept) {
    const name = each.to.function;
    if (changed.has(placeOf(each.to, name))) continue;
    rows.push({ key: `moved ${placeOf(each.to, name)}`, status: "moved", name, before: each.from, after: each.to, was: null, is: null, delta: 0, kept: each.kept, similarity: each.similarity });
  }
  return rows;
}
