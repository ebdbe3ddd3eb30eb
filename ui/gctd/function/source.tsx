// The source of a function: colours of syntax, covered and uncovered lines, a map of the whole next to it, and the keys that lead
// from one uncovered block to the next.

import { useCallback, useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { useKeys } from "../../kit/page/keys";
import { Link, withQuery } from "../../kit/page/router";
import { count, plural } from "../data/names";
import { CodeBlocks } from "./blocks";
import { gapsOf, lineId, signsOf } from "./code";
import type { Shown, Source } from "./types";

const BANDS = new Map([
  ["is-covered", /\++/g],
  ["is-uncovered", /-+/g],
  ["is-partly", /~+/g],
]);
/** Pixels of the numbers and signs. */
const GUTTER = 80;

export function SourcePanel({ shown }: { shown: Shown }) {
  const { source } = shown;
  return (
    <section class="panel source" aria-label="Source">
      <header>
        <h2>Source</h2>
        {source && <WholeFile shown={shown} source={source} />}
      </header>
      {source ? (
        <>
          <Code shown={shown} source={source} />
          <Legend shown={shown} />
        </>
      ) : (
        <NoSource shown={shown} />
      )}
    </section>
  );
}

function WholeFile({ shown, source }: { shown: Shown; source: Source }) {
  const isWhole = source.lines.length === source.total;
  const isSmall = shown.end_line - shown.line + 21 >= source.total;
  if (isSmall && isWhole) return <span class="muted">the whole file, {plural(source.total, "line")}</span>;
  return isWhole ? (
    <Link to={withQuery({ whole: null })}>Only the function</Link>
  ) : (
    <Link to={withQuery({ whole: "yes" })}>The whole file, {plural(source.total, "line")}</Link>
  );
}

function NoSource({ shown }: { shown: Shown }) {
  return (
    <div class="empty">
      <p class="empty-title">The source is not shown</p>
      <p>{shown.source_reason}.</p>
      {shown.link && (
        <p>
          <a href={shown.link} target="_blank" rel="noreferrer">
            See it on the repository's host
          </a>
        </p>
      )}
    </div>
  );
}

function Legend({ shown }: { shown: Shown }) {
  return (
    <p class="legend source-legend">
      {shown.blocks_reason ? (
        <span class="bad">No coverage is shown: {shown.blocks_reason}.</span>
      ) : (
        <>
          <span>
            <span class="sign is-covered">+</span> covered
          </span>
          <span>
            <span class="sign is-uncovered">−</span> not covered
          </span>
          <span>
            <span class="sign is-partly">~</span> covered in part
          </span>
        </>
      )}
      {shown.branches.length > 0 && (
        <span>
          <span class="t-branch">if</span> adds 1 to the complexity
        </span>
      )}
      {shown.license && <span>licence of the repository: {shown.license}</span>}
    </p>
  );
}

/** The line to begin at: the address names it, or the function of a whole file begins there. */
function startOf(shown: Shown, source: Source): { line: number; isNamed: boolean } | undefined {
  const named = /^#L(\d+)$/.exec(location.hash)?.[1];
  if (named) return { line: Number(named), isNamed: true };
  return source.lines.length === source.total && shown.line > 20 ? { line: shown.line, isNamed: false } : undefined;
}

function Code({ shown, source }: { shown: Shown; source: Source }) {
  const box = useRef<HTMLDivElement>(null);
  const [at, setAt] = useState(-1);
  const gaps = useMemo(() => gapsOf(shown), [shown]);
  const blocks = useRef<CodeBlocks | undefined>(undefined);
  const start = startOf(shown, source);
  useLayoutEffect(() => {
    if (!box.current) return;
    const made = new CodeBlocks(box.current, shown, source, start?.line ?? source.first);
    blocks.current = made;
    const all = () => made.showAll();
    addEventListener("beforeprint", all);
    return () => {
      removeEventListener("beforeprint", all);
      made.stop();
    };
  }, [shown]);
  const goTo = useCallback((line: number) => {
    const element = document.getElementById(lineId(line));
    if (!element) return;
    blocks.current?.show(line);
    element.tabIndex = -1;
    element.scrollIntoView({ block: "center" });
    element.focus({ preventScroll: true });
  }, []);
  useEffect(() => {
    if (start?.isNamed) goTo(start.line);
    else if (start) document.getElementById(lineId(start.line))?.scrollIntoView({ block: "start" });
  }, [shown]);
  const signs = useMemo(() => signsOf(shown, source), [shown]);
  /** The state of a line is shown at its number, not at its code. */
  const point = ({ target, clientX }: MouseEvent) => {
    if (!(target instanceof HTMLElement) || !target.dataset["line"]) return;
    target.title = clientX < (box.current?.getBoundingClientRect().left ?? 0) + GUTTER ? signs(Number(target.dataset["line"])) : "";
  };
  /** The numbers stay in place while the code moves aside. */
  const scrolled = ({ currentTarget }: Event) => {
    const { classList, scrollLeft } = currentTarget as Element;
    classList.toggle("is-aside", scrollLeft > 0);
  };
  const move = (by: number) => {
    if (gaps.length === 0) return false;
    const next = at < 0 && by < 0 ? gaps.length - 1 : (at + by + gaps.length) % gaps.length;
    setAt(next);
    goTo(gaps[next] ?? shown.line);
    return true;
  };
  useKeys([
    { keys: "n", does: "next uncovered code", run: () => move(1) },
    { keys: "p", does: "previous uncovered code", run: () => move(-1) },
  ]);
  return (
    <>
      {gaps.length > 0 && (
        <p class="line no-print source-steps">
          <button type="button" class="small" aria-keyshortcuts="p" onClick={() => move(-1)}>
            Previous <kbd aria-hidden="true">p</kbd>
          </button>
          <button type="button" class="small" aria-keyshortcuts="n" onClick={() => move(1)}>
            Next <kbd aria-hidden="true">n</kbd>
          </button>
          <span class="muted" role="status">
            {at < 0 ? `${plural(gaps.length, "uncovered place")}` : `uncovered place ${count(at + 1)} of ${count(gaps.length)}, line ${gaps[at]}`}
          </span>
        </p>
      )}
      <div class="code-frame">
        <div class="code" ref={box} onMouseMove={point} onScroll={scrolled} role="region" aria-label={`Source of ${shown.file}, lines ${source.first} to ${source.first + source.lines.length - 1}`} tabIndex={0} />
        <Minimap source={source} onPick={goTo} />
      </div>
    </>
  );
}

/** The covered and uncovered runs of lines as bands. */
function Minimap({ source, onPick }: { source: Source; onPick: (line: number) => void }) {
  const { marks, first, lines } = source;
  const bands = useMemo(() => bandsOf(marks), [marks]);
  const pick = (event: MouseEvent) => {
    const { top, height } = (event.currentTarget as Element).getBoundingClientRect();
    onPick(first + Math.min(lines.length - 1, Math.floor(((event.clientY - top) / height) * lines.length)));
  };
  return (
    <svg class="minimap" viewBox={`0 0 8 ${lines.length}`} preserveAspectRatio="none" aria-hidden="true" onClick={pick}>
      {bands.map(({ kind, path }) => (
        <path key={kind} class={kind} d={path} />
      ))}
    </svg>
  );
}

/** One path for all runs of a kind: a file has thousands of them. */
function bandsOf(marks: string): readonly { kind: string; path: string }[] {
  return [...BANDS].map(([kind, runs]) => ({ kind, path: Array.from(marks.matchAll(runs), ({ index, 0: run }) => `M0 ${index}h8v${run.length}h-8z`).join("") }));
}
