// Source as elements, made without a virtual document: thousands of lines open in a fraction of a second. Blocks of lines that
// are not in sight cost no layout (`content-visibility`).

import { type Layers, segmentsOf } from "./layers";
import type { Block, Shown, Source } from "./types";

const LINES = 50;

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

function lineOf(shown: Shown, source: Source, index: number, pieces: Layers[number]): HTMLElement {
  const number = source.first + index;
  const mark = source.marks[index] ?? " ";
  const isOutside = number < shown.line || number > shown.end_line;
  const line = element("div", `code-line${mark === " " ? "" : ` ${CLASSES[mark]}`}${isOutside ? " is-outside" : ""}`);
  line.id = lineId(number);
  line.dataset["line"] = String(number); // the number and the sign are drawn by the style sheet, so that they are not copied
  // a screen reader hears the state once for each run of lines
  if (mark !== " " && source.marks[index - 1] !== mark) line.append(element("span", "hidden-text code-word", `${WORDS[mark]}: `));
  const text = source.lines[index] ?? "";
  if (pieces.length === 0) {
    line.append(text || "\n"); // so that an empty line is copied as well
    return line;
  }
  for (const { text: part, classes, hidden } of segmentsOf(text, pieces)) {
    if (!classes && !hidden) {
      line.append(part);
      continue;
    }
    const made = element("span", hidden ? "t-hidden" : classes, part);
    if (hidden) made.title = "a character that is not visible, or that changes the direction of text";
    else if (classes.includes("t-branch")) made.title = "adds 1 to the complexity";
    line.append(made);
  }
  return line;
}

/** The text for the pointer next to each line: its state, and how often it ran. */
export function signsOf({ blocks }: Shown, source: Source): (line: number) => string {
  const runs = runsOf(blocks, source);
  return (line) => {
    const mark = source.marks[line - source.first] ?? " ";
    return mark === " " ? "" : signOf(mark, runs[line - source.first] ?? null);
  };
}

/** The lines of a source in blocks. */
export function codeOf(shown: Shown, source: Source, layers: Layers): DocumentFragment {
  const made = document.createDocumentFragment();
  for (let start = 0; start < source.lines.length; start += LINES) {
    const block = element("div", "code-block");
    const end = Math.min(start + LINES, source.lines.length);
    for (let index = start; index < end; index++) block.append(lineOf(shown, source, index, layers[index] ?? []));
    if (end - start < LINES) block.classList.add("is-short");
    made.append(block);
  }
  return made;
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
