// The lines of a source as elements, made without a virtual document.

import { type Layers, layersOf, segmentsOf } from "./layers";
import type { Block, Shown, Source } from "./types";

const WORDS: Readonly<Record<string, string>> = { "+": "covered", "-": "not covered", "~": "covered in part" };
const CLASSES: Readonly<Record<string, string>> = { "+": "is-covered", "-": "is-uncovered", "~": "is-partly" };

export const lineId = (line: number): string => `L${line}`;

/** The text of the sign next to a line. */
function signOf(mark: string, runs: number | null): string {
  if (runs === null || mark === "-") return WORDS[mark] ?? "";
  return `${WORDS[mark]}, ran ${runs.toLocaleString("en")} ${runs === 1 ? "time" : "times"}`;
}

/** The most runs of the blocks on each line, null if the profile does not count. */
function runsOf(blocks: readonly Block[], { first, lines }: Source): (number | null)[] {
  const runs: (number | null)[] = lines.map(() => null);
  for (const block of blocks) {
    if (block.runs === null) continue;
    for (let line = Math.max(first, block.start_line); line <= Math.min(block.end_line, first + lines.length - 1); line++) {
      runs[line - first] = Math.max(runs[line - first] ?? 0, block.runs);
    }
  }
  return runs;
}

function element(name: string, classes: string, text = ""): HTMLElement {
  const made = document.createElement(name);
  if (classes) made.className = classes;
  if (text) made.textContent = text;
  return made;
}

/** A line with its text in one piece. */
function lineOf(shown: Shown, source: Source, index: number): HTMLElement {
  const number = source.first + index;
  const mark = source.marks[index] ?? " ";
  const isOutside = number < shown.line || number > shown.end_line;
  const line = element("div", `code-line${mark === " " ? "" : ` ${CLASSES[mark]}`}${isOutside ? " is-outside" : ""}`);
  line.id = lineId(number);
  line.dataset["line"] = String(number); // the number and the sign are drawn by the style sheet, so that they are not copied
  // a screen reader hears the state once for each run of lines
  if (mark !== " " && source.marks[index - 1] !== mark) line.append(element("span", "code-word", `${WORDS[mark]}: `));
  line.append(source.lines[index] || "\n"); // so that an empty line is copied as well
  return line;
}

/** Divide the text of a line into its parts, each with its classes. */
export function colourLine(line: HTMLElement, text: string, pieces: Layers[number]): void {
  if (pieces.length === 0) return;
  const parts = segmentsOf(text, pieces).map(({ text: part, classes, hidden }) => {
    if (!classes && !hidden) return part;
    const made = element("span", hidden ? "t-hidden" : classes, part);
    if (hidden) made.title = "a character that is not visible, or that changes the direction of text";
    else if (classes.includes("t-branch")) made.title = "adds 1 to the complexity";
    return made;
  });
  line.lastChild?.replaceWith(...parts);
}

/** The lines of a source, each an element; their texts are in one piece. */
export function plainLines(shown: Shown, source: Source): HTMLElement[] {
  return source.lines.map((_, index) => lineOf(shown, source, index));
}

/** The lines of a source, each an element with colours. */
export function linesOf(shown: Shown, source: Source): HTMLElement[] {
  const layers = layersOf(shown);
  const lines = plainLines(shown, source);
  for (const [index, line] of lines.entries()) colourLine(line, source.lines[index] ?? "", layers[index] ?? []);
  return lines;
}

/** The text for the pointer next to each line: its state, and how often it ran. */
export function signsOf({ blocks }: Shown, source: Source): (line: number) => string {
  const runs = runsOf(blocks, source);
  return (line) => {
    const mark = source.marks[line - source.first] ?? " ";
    return mark === " " ? "" : signOf(mark, runs[line - source.first] ?? null);
  };
}

/** The first lines of the runs of uncovered lines in the function. */
export function gapsOf({ source, line, end_line: last }: Shown): readonly number[] {
  if (!source) return [];
  const isGap = (index: number) => "-~".includes(source.marks[index] ?? " ") && (source.marks[index] ?? " ") !== " ";
  return [...source.marks].flatMap((_, index) => {
    const number = source.first + index;
    return number >= line && number <= last && isGap(index) && !isGap(index - 1) ? [number] : [];
  });
}
