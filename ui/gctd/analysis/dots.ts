// The dots of complexity against coverage: where each is, and which functions it has.

import { count, score } from "../data/names";
import type { FunctionEntry } from "../data/types";

export const LEFT = 40;
export const RIGHT = 16;
export const TOP = 20;
export const BOTTOM = 36;
export const HEIGHT = 300;
const LEAST = 0.8;
const NAMED = 4;

export interface Dot {
  cyclomatic: number;
  /** Per cent, whole. */
  coverage: number;
  crap: number;
  entries: FunctionEntry[];
}

/** Functions at the same place are one dot; the dots with the highest values are last, so that they are drawn on top. */
export function dotsOf(entries: readonly FunctionEntry[]): Dot[] {
  const dots = new Map<string, Dot>();
  for (const entry of entries) {
    const covered = Math.round(entry.coverage ?? 0);
    const key = `${entry.cyclomatic} ${covered}`;
    const dot = dots.get(key);
    if (dot) {
      dot.entries.push(entry);
      dot.crap = Math.max(dot.crap, entry.crap);
    } else dots.set(key, { cyclomatic: entry.cyclomatic, coverage: covered, crap: entry.crap, entries: [entry] });
  }
  return [...dots.values()].sort((a, b) => a.crap - b.crap);
}

/** All that is said of a dot. */
export function linesOf({ cyclomatic, coverage, entries }: Dot): string[] {
  const worst = [...entries].sort((a, b) => b.crap - a.crap);
  const more = entries.length - NAMED;
  return [
    ...worst.slice(0, NAMED).map((entry) => `${entry.function}, CRAP ${score(entry.crap)}`),
    ...(more > 0 ? [`and ${count(more)} more`] : []),
    `complexity ${cyclomatic}, ${coverage} % covered`,
  ];
}

export const radiusOf = ({ entries }: Dot): number => Math.min(9, 3 + Math.log2(entries.length));

/** From values to places and back. Complexity goes by its logarithm: most functions are simple, the others are looked for. */
export function scales(width: number, most: number) {
  const span = width - LEFT - RIGHT;
  const rise = (HEIGHT - TOP - BOTTOM) / Math.log((most * 1.3) / LEAST);
  return {
    x: (covered: number) => LEFT + (span * covered) / 100,
    y: (cyclomatic: number) => HEIGHT - BOTTOM - rise * Math.log(Math.max(cyclomatic, LEAST) / LEAST),
    covered: (place: number) => Math.max(0, Math.min(100, (100 * (place - LEFT)) / span)),
    cyclomatic: (place: number) => LEAST * Math.exp((HEIGHT - BOTTOM - place) / rise),
  };
}

export type Scales = ReturnType<typeof scales>;
export type Point = readonly [number, number];

/** The dot nearest to a place, within that number of pixels. */
export function nearest(dots: readonly Dot[], [left, top]: Point, at: Scales, within: number): Dot | null {
  let found: Dot | null = null;
  let least = within;
  for (const dot of dots) {
    const distance = Math.max(0, Math.hypot(at.x(dot.coverage) - left, at.y(dot.cyclomatic) - top) - radiusOf(dot));
    if (distance < least || (distance === least && found === null)) [found, least] = [dot, distance];
  }
  return found;
}

/** Circles as one path. */
export function circles(dots: readonly Dot[], at: Scales): string {
  return dots
    .map((dot) => {
      const radius = radiusOf(dot);
      const left = (at.x(dot.coverage) - radius).toFixed(1);
      return `M${left} ${at.y(dot.cyclomatic).toFixed(1)}a${radius} ${radius} 0 1 0 ${2 * radius} 0a${radius} ${radius} 0 1 0 ${-2 * radius} 0`;
    })
    .join("");
}
