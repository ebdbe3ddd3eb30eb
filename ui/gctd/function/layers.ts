// The classes of the characters of each line: colours of syntax, code that no test ran, branches, characters that could mislead.

import { partsOf, type Piece } from "./lexer";
import type { Block, Shown } from "./types";

/** Control characters, and characters that change the direction of text: they could hide what the code does. */
export const HIDDEN = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g;

/** A part of a line, by its columns from 0, with its classes. */
interface Segment {
  text: string;
  classes: string;
  /** A character that is shown by its number. */
  hidden?: boolean;
}

/** The pieces of each line. */
export type Layers = readonly Piece[][];

/** The column of a character, from 0: the service counts bytes, from 1. */
function columnOf(line: string, bytes: number): number {
  if (/^[\x00-\x7f]*$/.test(line)) return bytes - 1;
  return new TextDecoder().decode(new TextEncoder().encode(line).slice(0, bytes - 1)).length;
}

export function layersOf({ source, blocks, branches, line: start, end_line: last }: Shown): Layers {
  if (!source) return [];
  const { lines, first, marks } = source;
  const layers: Piece[][] = lines.map(() => []);
  // The lines before the function may begin inside a comment or a string, the function cannot.
  for (const [from, to] of [[first, start], [start, last + 1], [last + 1, first + lines.length]] as const) {
    addSyntax(layers.slice(from - first, to - first), lines.slice(from - first, to - first));
  }
  for (const block of blocks) addBlock(layers, lines, first, marks, block);
  for (const { line, column, token } of branches) {
    const from = columnOf(lines[line - first] ?? "", column);
    layers[line - first]?.push({ from, to: from + token.length, kind: "branch" });
  }
  for (const [index, line] of lines.entries()) {
    if (line.search(HIDDEN) < 0) continue;
    for (const match of line.matchAll(HIDDEN)) layers[index]?.push({ from: match.index, to: match.index + 1, kind: "hidden" });
  }
  return layers;
}

function addSyntax(layers: Piece[][], lines: readonly string[]): void {
  let row = 0;
  let start = 0;
  for (const { from, to, kind } of partsOf(lines.join("\n"))) {
    while (from > start + (lines[row]?.length ?? 0)) start += (lines[row++]?.length ?? 0) + 1;
    for (let at = row, begins = start; at < lines.length && begins < to; begins += (lines[at++]?.length ?? 0) + 1) {
      const length = lines[at]?.length ?? 0;
      layers[at]?.push({ from: Math.max(0, from - begins), to: Math.min(length, to - begins), kind });
    }
  }
}

/** On a line with covered and uncovered code, the uncovered part is marked. */
function addBlock(layers: Piece[][], lines: readonly string[], first: number, marks: string, block: Block): void {
  if (block.covered) return;
  for (let number = Math.max(block.start_line, first); number <= block.end_line; number++) {
    const index = number - first;
    const line = lines[index];
    if (line === undefined) return;
    if (marks[index] !== "~") continue;
    const from = number === block.start_line ? columnOf(line, block.start_column) : 0;
    const to = number === block.end_line ? columnOf(line, block.end_column) : line.length;
    layers[index]?.push({ from, to, kind: "unrun" });
  }
}

/** The segments of a line. */
export function segmentsOf(line: string, pieces: readonly Piece[]): Segment[] {
  const cuts = new Set([0, line.length]);
  for (const { from, to } of pieces) cuts.add(Math.max(0, from)).add(Math.min(line.length, to));
  const ordered = [...cuts].sort((a, b) => a - b);
  const segments: Segment[] = [];
  for (let index = 0; index + 1 < ordered.length; index++) {
    const [from = 0, to = 0] = [ordered[index], ordered[index + 1]];
    let classes = "";
    let hidden = false;
    for (const piece of pieces) {
      if (piece.from > from || to > piece.to) continue;
      if (piece.kind === "hidden") hidden = true;
      else classes += `${classes && " "}t-${piece.kind}`;
    }
    const text = line.slice(from, to);
    if (hidden) segments.push({ text: `U+${text.charCodeAt(0).toString(16).toUpperCase().padStart(4, "0")}`, classes: "", hidden });
    else segments.push({ text, classes });
  }
  return segments;
}
