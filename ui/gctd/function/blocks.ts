// Thousands of lines in blocks, opened in a fraction of a second: a block gets its colours before it comes into sight, and others
// follow while the browser has nothing to do. All lines with their texts, marks and addresses are there from the start, so that
// the browser's search, links, screen readers and copies have them. A block out of sight costs no layout (`content-visibility`).

import { colourLine, plainLines } from "./code";
import { HIDDEN, layersOf } from "./layers";
import type { Shown, Source } from "./types";

/** Lines of a block. */
const LINES = 25;
/** Blocks that get their colours with the first picture. */
const FIRST = 3;
/** Pixels before the sight. */
const AHEAD = 2_000;
/** Milliseconds that the next block may take. */
const SPARE = 4;

const whenIdle = (run: (left: () => number) => void): void => {
  if (typeof requestIdleCallback === "function") requestIdleCallback((deadline) => run(() => deadline.timeRemaining()));
  else setTimeout(() => run(() => 0), 50);
};

export class CodeBlocks {
  readonly #source: Source;
  readonly #layers: ReturnType<typeof layersOf>;
  readonly #blocks: HTMLElement[] = [];
  readonly #plain = new Set<number>();
  readonly #ahead: IntersectionObserver;

  /** Put the lines into `box`. `start` is the line that will be in sight. */
  constructor(box: HTMLElement, shown: Shown, source: Source, start: number) {
    this.#source = source;
    this.#layers = layersOf(shown);
    const lines = plainLines(shown, source);
    for (let from = 0; from < lines.length; from += LINES) {
      const block = document.createElement("div");
      block.className = from + LINES > lines.length ? "code-block is-short" : "code-block";
      block.append(...lines.slice(from, from + LINES));
      this.#plain.add(this.#blocks.push(block) - 1);
    }
    box.replaceChildren(...this.#blocks);
    const first = this.#blockOf(start);
    for (let number = first - 1; number < first + FIRST; number++) this.#colour(number);
    // a text that could mislead is never seen as it is
    for (const [index, text] of source.lines.entries()) if (text.search(HIDDEN) >= 0) this.#colour(Math.floor(index / LINES));
    this.#ahead = new IntersectionObserver((entries) => entries.forEach(({ isIntersecting, target }) => isIntersecting && this.#colour(this.#blocks.indexOf(target as HTMLElement))), {
      root: box.closest("main"),
      rootMargin: `${AHEAD}px 0px`,
    });
    for (const number of this.#plain) this.#ahead.observe(this.#blocks[number] as HTMLElement);
    this.#rest();
  }

  /** Colour the block of a line, and those at its sides. */
  show(line: number): void {
    const block = this.#blockOf(line);
    for (const number of [block - 1, block, block + 1]) this.#colour(number);
  }

  showAll(): void {
    for (const number of this.#plain) this.#colour(number);
  }

  /** Leave the rest as it is. */
  stop(): void {
    this.#plain.clear();
    this.#ahead.disconnect();
  }

  readonly #blockOf = (line: number): number => Math.floor((line - this.#source.first) / LINES);

  #colour(number: number): void {
    const block = this.#blocks[number];
    if (!block || !this.#plain.delete(number)) return;
    this.#ahead?.unobserve(block);
    let index = number * LINES;
    for (const line of block.children) {
      colourLine(line as HTMLElement, this.#source.lines[index] ?? "", this.#layers[index] ?? []);
      index++;
    }
  }

  #rest(): void {
    whenIdle((left) => {
      for (const number of this.#plain) {
        this.#colour(number);
        if (left() < SPARE) break;
      }
      if (this.#plain.size > 0) this.#rest();
    });
  }
}
