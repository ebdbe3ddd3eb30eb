// The series of a chart, and its axis.

export interface Series {
  label: string;
  /** A variable of the style sheet, such as `accent`. */
  colour: string;
  values: readonly (number | null)[];
  /** Bars that are stacked on the bars of the series before. */
  bars?: boolean;
  fill?: boolean;
  dashed?: boolean;
  show?: (value: number) => string;
}

/** The horizontal axis: times (seconds since 1970, ascending), or steps of one width with their names. */
export type Along = { at: readonly number[] } | { steps: readonly string[] };
