// One analysis of a project: where its risk is, which functions it is, and what would help.

import type { ComponentChildren } from "preact";
import { useMemo } from "preact/hooks";
import { read } from "../../kit/http";
import { useLoad } from "../../kit/load";
import { go, Link, useQuery, withQuery } from "../../kit/router";
import { Empty, ErrorPanel, Skeleton } from "../../kit/states";
import { type Tile, Treemap } from "../../kit/treemap";
import { Ago } from "../../kit/time";
import { Functions } from "../analysis/functions";
import { Distribution, Exports, Gaps, Verdict } from "../analysis/parts";
import { directoryOf, isChosen, isMissing, parseRange, type Range, rangeText, thresholdOf } from "../analysis/risk";
import { Scatter } from "../analysis/scatter";
import type { Whole } from "../analysis/types";
import { count, plural, projectName, score, shortCommit } from "../names";
import type { ScreenProps } from "../routes";
import type { FunctionEntry } from "../types";
import "../analysis/analysis.css";

const ALL = 1_000_000;
const TILES = 150;

export default function AnalysisScreen({ params }: ScreenProps) {
  const id = params["id"] ?? "";
  const [task] = useQuery("task");
  const path = task ? `/api/tasks/${encodeURIComponent(task)}/result` : `/api/repos/${encodeURIComponent(id)}`;
  const { value, error, reload } = useLoad((signal) => read<Whole>(`${path}?entries=${ALL}`, signal), [path]);
  if (error && !value) {
    return (
      <div class="page">
        <h1>Analysis</h1>
        {isMissing(error) ? <Empty title="There is no such analysis" /> : <ErrorPanel error={error} retry={reload} />}
      </div>
    );
  }
  return value ? <Shown analysis={value} /> : <Skeleton lines={8} />;
}

function Shown({ analysis }: { analysis: Whole }) {
  const { summary, repo_info: info, entries } = analysis;
  const threshold = thresholdOf(analysis.flags);
  const left = summary.total_funcs - entries.length;
  return (
    <div class="page analysis">
      <header class="page-head">
        <div>
          <h1>{projectName(info.url, analysis.project)}</h1>
          <p class="muted">
            <code>{shortCommit(info.commit_sha)}</code> {info.ref}, <Ago at={analysis.analyzed_at} /> ago, {analysis.go_version}, {analysis.engine}{" "}
            {analysis.engine_version}, sandbox {analysis.sandbox || "not known"}
          </p>
        </div>
        <p class="line">
          <Link to={`/analyses/${analysis.id}/history`}>History and comparison</Link>
          <Link to={`/tasks/${analysis.task_id}`}>Task</Link>
        </p>
      </header>
      <ul class="figures" aria-label="Figures">
        <Figure name="average CRAP" value={score(summary.average)} />
        <Figure name={`over ${threshold}`} value={count(summary.exceeded)} bad={summary.exceeded > 0} />
        <Figure name="functions" value={count(summary.total_funcs)} />
        <Figure name="total CRAP" value={count(Math.round(summary.combined))} />
        <Figure name="packages without coverage" value={count(analysis.uncovered.length)} bad={analysis.uncovered.length > 0} />
      </ul>
      {left > 0 && <p class="muted">{plural(left, "function")} not shown: flags of the project shorten its report (--min, --top).</p>}
      {entries.length === 0 ? <Empty title="No function was found" /> : <Risk analysis={analysis} threshold={threshold} />}
      <div class="panels">
        <Panel title="Distribution">
          <Distribution entries={entries} threshold={threshold} />
        </Panel>
        <Panel title="Gate" note="against the analysis before">
          <Verdict id={analysis.id} task={analysis.task_id} />
        </Panel>
        <Panel title="Coverage">
          <Gaps analysis={analysis} />
        </Panel>
        <Panel title="Exports and badge">
          <Exports analysis={analysis} />
        </Panel>
      </div>
    </div>
  );
}

function Risk({ analysis, threshold }: { analysis: Whole; threshold: number }) {
  const [text, setText] = useQuery("q");
  const [directory, setDirectory] = useQuery("in");
  const [complexityText] = useQuery("complexity");
  const [coverageText] = useQuery("coverage");
  const [complexity, coverage] = [parseRange(complexityText), parseRange(coverageText)];
  const inDirectory = useMemo(() => analysis.entries.filter(isChosen({ text: "", directory, complexity: null, coverage: null })), [analysis, directory]);
  const chosen = useMemo(
    () => inDirectory.filter(isChosen({ text, directory: "", complexity, coverage })),
    [inDirectory, text, complexityText, coverageText],
  );
  const tiles = useMemo(() => tilesOf(inDirectory, threshold, directory ? (entry) => entry.file : directoryOf), [inDirectory, directory, threshold]);
  const choose = (one: Range | null, other: Range | null) => go(withQuery({ complexity: rangeText(one), coverage: rangeText(other) }), { replace: true });
  const isAll = chosen.length === analysis.entries.length;
  return (
    <>
      <div class="panels">
        <Panel title={directory ? `Files of ${directory}` : "Risk by package"} note="area: complexity; colour: the highest CRAP">
          <Treemap
            label={directory ? `Files of ${directory} by risk` : "Packages by risk"}
            tiles={tiles}
            height={300}
            onOpen={(key) => (directory ? setText(key) : setDirectory(key))}
          />
          {directory && (
            <p>
              <button type="button" class="small" onClick={() => setDirectory("")}>
                All packages
              </button>
            </p>
          )}
        </Panel>
        <Panel title="Complexity against coverage" note="draw a frame to choose functions">
          <Scatter entries={inDirectory} threshold={threshold} complexity={complexity} coverage={coverage} onChoose={choose} />
          <Bounds complexity={complexity} coverage={coverage} choose={choose} />
        </Panel>
      </div>
      <section class="list" aria-label="Functions">
        <div class="toolbar">
          <h2>Functions</h2>
          <input
            type="search"
            aria-label="Filter functions"
            placeholder="filter: words of function, file or package"
            value={text}
            spellcheck={false}
            autocomplete="off"
            onInput={(event) => setText(event.currentTarget.value, { replace: true })}
          />
          <span class="muted" role="status">
            {isAll ? `all ${count(chosen.length)}` : `${count(chosen.length)} of ${count(analysis.entries.length)}`}
          </span>
          <button type="button" disabled={isAll && !directory} onClick={() => go(withQuery({ q: null, in: null, complexity: null, coverage: null }))}>
            Show all
          </button>
        </div>
        {chosen.length === 0 ? <Empty title="No function is so" /> : <Functions entries={chosen} threshold={threshold} source={analysis.source} />}
      </section>
    </>
  );
}

interface BoundsProps {
  complexity: Range | null;
  coverage: Range | null;
  choose: (complexity: Range | null, coverage: Range | null) => void;
}

const ANY_COMPLEXITY: Range = [1, 9999];
const ANY_COVERAGE: Range = [0, 100];

function changed(range: Range | null, index: 0 | 1, text: string, any: Range): Range | null {
  const next: [number, number] = [...(range ?? any)];
  next[index] = text === "" ? any[index] : Number(text);
  return next[0] === any[0] && next[1] === any[1] ? null : next;
}

/** The frame as numbers: for the keyboard, and to be exact. */
function Bounds({ complexity, coverage, choose }: BoundsProps) {
  const complex = (index: 0 | 1) => (text: string) => choose(changed(complexity, index, text, ANY_COMPLEXITY), coverage);
  const covered = (index: 0 | 1) => (text: string) => choose(complexity, changed(coverage, index, text, ANY_COVERAGE));
  return (
    <fieldset class="bounds">
      <legend class="hidden-text">Which functions the table shows</legend>
      <Bound shown="Complexity" label="Complexity from" value={complexity?.[0]} set={complex(0)} />
      <Bound shown="to" label="Complexity to" value={complexity?.[1]} set={complex(1)} />
      <Bound shown="Coverage" label="Coverage from" value={coverage?.[0]} set={covered(0)} />
      <Bound shown="to" label="Coverage to" value={coverage?.[1]} set={covered(1)} />
    </fieldset>
  );
}

function Bound({ shown, label, value, set }: { shown: string; label: string; value: number | undefined; set: (text: string) => void }) {
  const text = value === undefined || value === ANY_COMPLEXITY[1] ? "" : String(value);
  return (
    <label>
      {shown} <input type="number" min={0} aria-label={label} value={text} onChange={(event) => set(event.currentTarget.value)} />
    </label>
  );
}

function Figure({ name, value, bad = false }: { name: string; value: string; bad?: boolean }) {
  return (
    <li>
      <strong class={`figure${bad ? " bad" : ""}`}>{value}</strong> {name}
    </li>
  );
}

function Panel({ title, note, children }: { title: string; note?: string; children: ComponentChildren }) {
  return (
    <section class="panel" aria-label={title}>
      <header>
        <h2>{title}</h2>
        {note && <span class="muted">{note}</span>}
      </header>
      {children}
    </section>
  );
}

/** A tile for each place, the largest TILES of them: the others are in the table. */
function tilesOf(entries: readonly FunctionEntry[], threshold: number, placeOf: (entry: FunctionEntry) => string): Tile[] {
  const found = new Map<string, { size: number; risk: number; functions: number; over: number }>();
  for (const entry of entries) {
    const key = placeOf(entry);
    const tile = found.get(key) ?? { size: 0, risk: 0, functions: 0, over: 0 };
    tile.size += entry.cyclomatic;
    tile.risk = Math.max(tile.risk, entry.crap);
    tile.functions += 1;
    tile.over += entry.crap > threshold ? 1 : 0;
    found.set(key, tile);
  }
  return [...found]
    .sort(([, a], [, b]) => b.size - a.size)
    .slice(0, TILES)
    .map(([key, { size, risk, functions, over }]) => ({
      key,
      label: key.split("/").slice(-2).join("/"),
      size,
      risk,
      about: `${key}, highest CRAP ${score(risk)}, ${over} of ${plural(functions, "function")} over ${threshold}, complexity ${count(size)}`,
    }));
}
