// The lines of two texts side by side: equal lines are one row, and so are a removed and an added line at the same place.

/** A row: the index of a line of each text; null if the text has none there. */
export type Pair = readonly [number | null, number | null];

/** The most steps of the comparison; longer texts are shown as replaced between their common ends. */
const MOST = 4_000_000;

export function pairsOf(before: readonly string[], after: readonly string[]): Pair[] {
  let start = 0;
  while (start < before.length && start < after.length && before[start] === after[start]) start += 1;
  let tail = 0;
  while (tail < before.length - start && tail < after.length - start && before.at(-1 - tail) === after.at(-1 - tail)) tail += 1;
  const [lines, others] = [before.slice(start, before.length - tail), after.slice(start, after.length - tail)];
  const pairs: Pair[] = Array.from({ length: start }, (_, index): Pair => [index, index]);
  for (const [one, other] of aligned(lines, others)) pairs.push([one === null ? null : one + start, other === null ? null : other + start]);
  for (let index = tail; index > 0; index -= 1) pairs.push([before.length - index, after.length - index]);
  return pairs;
}

/** Rows of texts without common ends, by a longest common subsequence. */
function aligned(lines: readonly string[], others: readonly string[]): Pair[] {
  const equal = lines.length * others.length <= MOST ? common(lines, others) : [];
  const pairs: Pair[] = [];
  let [one, other] = [0, 0];
  for (const [nextOne, nextOther] of [...equal, [lines.length, others.length] as const]) {
    while (one < nextOne || other < nextOther) pairs.push([one < nextOne ? one++ : null, other < nextOther ? other++ : null]);
    if (nextOne < lines.length || nextOther < others.length) pairs.push([one++, other++]);
  }
  return pairs;
}

/** The indexes of equal lines, in order. */
function common(lines: readonly string[], others: readonly string[]): (readonly [number, number])[] {
  const width = others.length + 1;
  const length = new Uint32Array((lines.length + 1) * width);
  const at = (one: number, other: number): number => length[one * width + other] ?? 0;
  for (let one = lines.length - 1; one >= 0; one -= 1) {
    for (let other = others.length - 1; other >= 0; other -= 1) {
      length[one * width + other] = lines[one] === others[other] ? at(one + 1, other + 1) + 1 : Math.max(at(one + 1, other), at(one, other + 1));
    }
  }
  const found: (readonly [number, number])[] = [];
  for (let [one, other] = [0, 0]; one < lines.length && other < others.length; ) {
    if (lines[one] === others[other]) found.push([one++, other++]);
    else if (at(one + 1, other) >= at(one, other + 1)) one += 1;
    else other += 1;
  }
  return found;
}
