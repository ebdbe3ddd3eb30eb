// Positions of the log as texts: `17`, or `17.2` for the third event of a commit.

/** Negative where `a` is before `b`, 0 if they are the same. */
export function compare(a: string, b: string): number {
  const [first, firstIndex = 0] = a.split(".").map(Number) as [number, number?];
  const [second, secondIndex = 0] = b.split(".").map(Number) as [number, number?];
  return first - second || firstIndex - secondIndex;
}

/** The sequence of a position. */
export const sequenceOf = (position: string): number => Number.parseInt(position, 10);
