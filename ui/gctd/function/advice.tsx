// The tests that bring a function to the threshold, step by step, or its division.

import { lineId } from "./code";
import { plural, score } from "../data/names";
import type { Advice, Block, Shown, Source } from "./types";

export function AdvicePanel({ shown }: { shown: Shown }) {
  const { advice } = shown;
  return (
    <section class="panel" aria-label="What helps">
      <header>
        <h2>What helps</h2>
      </header>
      {advice ? <Given shown={shown} advice={advice} /> : <p>No advice can be given: {shown.advice_reason}.</p>}
    </section>
  );
}

/** Parts into which somebody would divide a function instead of testing it. */
const FEW = 4;

const short = (value: number): string => (Number.isInteger(value) ? String(value) : value.toFixed(1));

function Given({ shown, advice }: { shown: Shown; advice: Advice }) {
  if (advice.kind === "none") return <NotRisky shown={shown} advice={advice} />;
  if (advice.kind === "split") return <Split shown={shown} advice={advice} />;
  return (
    <>
      <p>
        Covering <strong>{plural(advice.blocks, "block")}</strong> brings {score(shown.crap)} to{" "}
        {advice.more ? `the threshold of ${short(shown.threshold)}` : <strong>{score(advice.crap)}</strong>}. The threshold is {short(shown.threshold)}.
      </p>
      <ol class="advice">
        {advice.steps.map((step, index) => {
          const target = shown.blocks[step.target];
          return target ? (
            <li key={step.target}>
              {index === 0 && step.blocks.includes(0) ? "Call it in a test that reaches" : "Reach"} <Lines shown={shown} block={target} />
              {step.blocks.length > 1 && <span class="muted"> ({plural(step.blocks.length, "block")})</span>}: at most <strong>{score(step.crap)}</strong>
            </li>
          ) : null;
        })}
        {advice.more ? <li>Then cover {plural(advice.more, "more block")}.</li> : null}
      </ol>
      {advice.parts !== null && advice.parts > 1 && advice.parts <= FEW && <p class="muted">Or split it into {plural(advice.parts, "function")} of equal complexity: then no part is risky, even without tests.</p>}
    </>
  );
}

function NotRisky({ shown, advice }: { shown: Shown; advice: Advice }) {
  const needed = Math.ceil((advice.needed ?? 0) * 10) / 10;
  return (
    <p>
      The function is not risky: its value is at most {short(shown.threshold)}.{needed > 0 ? ` It stays so with a coverage of ${needed} % or more.` : " It stays so without tests."}
    </p>
  );
}

function Split({ shown, advice }: { shown: Shown; advice: Advice }) {
  const over = Math.ceil(shown.cyclomatic - shown.threshold);
  return (
    <>
      <p>
        <strong>Split it.</strong> Its complexity of {shown.cyclomatic} alone is above the threshold of {short(shown.threshold)}: no coverage is enough. It has{" "}
        {plural(over, "branch", "branches")} too many.
      </p>
      {advice.parts !== null && <p class="muted">In {plural(advice.parts, "function")} of equal complexity, no part is risky, even without tests.</p>}
    </>
  );
}

/** Lines of a block, as a link to them if the source is shown. */
function Lines({ shown, block }: { shown: Shown; block: Block }) {
  const { source } = shown;
  const [first, last] = linesOf(block, source);
  const text = first === last ? `line ${first}` : `lines ${first}–${last}`;
  const isThere = source && first >= source.first && first < source.first + source.lines.length;
  if (!isThere) return <>{text}</>;
  const follow = () => {
    const line = document.getElementById(lineId(first));
    if (line) line.tabIndex = -1; // the address leads the focus there
  };
  return (
    <a href={`#${lineId(first)}`} onClick={follow}>
      {text}
    </a>
  );
}

const BRACE = /^\s*[{}]?\s*$/;

/** The first and the last line of a block with more than a brace of it. */
function linesOf({ start_line: first, start_column: from, end_line: last, end_column: to }: Block, source: Source | null): readonly [number, number] {
  const textOf = (line: number) => source?.lines[line - source.first] ?? "…";
  const starts = first < last && BRACE.test(textOf(first).slice(from - 1)) ? first + 1 : first;
  const ends = starts < last && BRACE.test(textOf(last).slice(0, to - 1)) ? last - 1 : last;
  return [starts, ends];
}
