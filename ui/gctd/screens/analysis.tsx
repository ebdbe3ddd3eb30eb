// One analysis of a project: the places of its risk, the risky functions, and the best remedies.

import type { ComponentChildren } from "preact";
import { useCallback, useEffect, useMemo } from "preact/hooks";
import { type Crumb, Crumbs } from "../../kit/page/crumbs";
import { read } from "../../kit/data/http";
import { useLoad } from "../../kit/data/load";
import { go, Link, useQuery, withQuery } from "../../kit/page/router";
import { Empty, ErrorPanel, Skeleton } from "../../kit/parts/states";
import { type Tile, Treemap } from "../../kit/charts/treemap";
import { Ago, utc } from "../../kit/parts/time";
import { useTitle } from "../../kit/page/title";
import { rescore } from "../data/actions";
import { Functions } from "../analysis/functions";
import { Verdict } from "../analysis/gate";
import { Newer } from "../analysis/newer";
import { Distribution, Exports, Gaps } from "../analysis/parts";
import { EVERY, directoryName, directoryOf, isChosen, isMissing, parseRange, type Range, rangeText, thresholdOf } from "../analysis/risk";
import { Scatter } from "../analysis/scatter";
import type { Whole } from "../analysis/types";
import { count, plural, projectName, repoName, score, shortCommit } from "../data/names";
import { isMeasured, isRisky, unmeasuredOf } from "../data/risky";
import { analysisAt, functionAt, historyAt, repoAt, taskAt } from "../data/places";
import type { ScreenProps } from "../screen";
import type { FunctionEntry } from "../data/types";
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
        <Crumbs above={[{ name: "Analyses", to: "/analyses" }]} here="Analysis" />
        <h1>Analysis</h1>
        {isMissing(error) ? <Empty title="There is no such analysis" /> : <ErrorPanel error={error} retry={reload} />}
      </div>
    );
  }
  return value ? <Shown key={path} analysis={value} isLatest={!task} reload={reload} /> : <Skeleton lines={8} />;
}

/** The pages above an analysis. */
function above({ repo_id: repo, repo_info: { url } }: Whole): readonly Crumb[] {
  return [
    { name: "Repositories", to: "/repos" },
    { name: repoName(url), to: repoAt(repo) },
  ];
}

function Shown({ analysis, isLatest, reload }: { analysis: Whole; isLatest: boolean; reload: () => void }) {
  const { repo_info: info, entries } = analysis;
  const figures = analysis.measured;
  const threshold = thresholdOf(analysis.flags);
  const [risky, unmeasured] = [analysis.measured.exceeded, unmeasuredOf(analysis)];
  const left = analysis.summary.total_funcs - entries.length;
  const name = projectName(info.url, analysis.project);
  const commit = shortCommit(info.commit_sha);
  const [packageName] = useQuery("in");
  useTitle(`${packageName && `${packageName} · `}${name} ${commit}${isLatest ? "" : `, ${utc(analysis.analyzed_at)}`}`, 1);
  const latest = analysis.project === "." ? "latest analysis" : analysis.project;
  const history = historyAt(analysis.id);
  const crumbs: readonly Crumb[] = [
    { name: latest, to: analysisAt(analysis.id) },
    ...(isLatest ? [] : [{ name: `${commit}, ${utc(analysis.analyzed_at).slice(0, 16)} UTC`, to: analysisAt(analysis.id, analysis.task_id) }]),
    ...(packageName ? [{ name: packageName, to: withQuery({}) }] : []),
  ];
  useEffect(() => document.getElementById(location.hash.slice(1))?.scrollIntoView(), []);
  return (
    <div class="page analysis">
      <Crumbs above={[...above(analysis), ...crumbs.slice(0, -1)]} here={crumbs.at(-1)?.name ?? ""} />
      <header class="page-head">
        <div>
          <h1>{name}</h1>
          <p class="muted">
            <code>{commit}</code> {info.ref}, <Ago at={analysis.analyzed_at} /> ago<span class="print-only"> ({utc(analysis.analyzed_at)})</span>, {analysis.go_version}, {analysis.engine}{" "}
            {analysis.engine_version}, sandbox {analysis.sandbox || "not known"}
          </p>
          <p class="print-only">{location.href}</p>
        </div>
        <p class="line no-print">
          <Link to={history}>History and comparison</Link>
          <Link to={taskAt(analysis.task_id)}>Task</Link>
          <Rescore analysis={analysis} />
          <button type="button" class="small" onClick={() => print()}>
            Print
          </button>
        </p>
      </header>
      {isLatest && <Newer id={analysis.id} known={[analysis.task_id]} reload={reload} />}
      <ul class="figures" aria-label="Figures">
        <Figure name="average CRAP" value={score(figures.average)} to={history} />
        <Figure name={risky === 1 ? "risky function" : "risky functions"} value={count(risky)} bad={risky > 0} to={withQuery({ ...NO_CHOICE, only: "risky" })} />
        {unmeasured !== null && unmeasured > 0 && <Figure name="not measured" value={count(unmeasured)} bad to={withQuery({ ...NO_CHOICE, only: "unmeasured" })} />}
        <Figure name={figures.total_funcs === 1 ? "function" : "functions"} value={count(figures.total_funcs)} to={withQuery(NO_CHOICE)} />
        <Figure name="total CRAP" value={count(Math.round(figures.combined))} to={`${history}?metric=combined`} />
        <Figure
          name={`${analysis.uncovered.length === 1 ? "package" : "packages"} without coverage`}
          value={count(analysis.uncovered.length)}
          bad={analysis.uncovered.length > 0}
          to="#coverage"
        />
      </ul>
      {unmeasured > 0 && (
        <p class="muted">{plural(unmeasured, "function")} could not be measured. No figure counts them, and they are not risky.</p>
      )}
      {left > 0 && <p class="muted">{plural(left, "function")} not shown: flags of the project shorten its report (--min, --top).</p>}
      {entries.length === 0 ? <Empty title="No function was found" /> : <Risk analysis={analysis} threshold={threshold} isLatest={isLatest} />}
      <div class="panels">
        <Panel title="Distribution">
          <Distribution entries={entries} threshold={threshold} />
        </Panel>
        <Panel title="Gate" id="gate">
          <Verdict id={analysis.id} task={analysis.task_id} url={info.url} project={analysis.project} />
        </Panel>
        <Panel title="Coverage" id="coverage">
          <Gaps analysis={analysis} />
        </Panel>
        <Panel title="Exports and badge" id="exports" noPrint>
          <Exports analysis={analysis} />
        </Panel>
      </div>
    </div>
  );
}

/** `only` of the address: risky functions, or functions that could not be measured. */
function isOnly(only: string, threshold: number): (entry: FunctionEntry) => boolean {
  if (only === "risky") return (entry) => isRisky(entry, threshold);
  return only === "unmeasured" ? (entry) => !isMeasured(entry) : () => true;
}

const NO_CHOICE = { q: null, in: null, complexity: null, coverage: null, crap: null, only: null };

function Risk({ analysis, threshold, isLatest }: { analysis: Whole; threshold: number; isLatest: boolean }) {
  const [text, setText] = useQuery("q");
  const [given, setDirectory] = useQuery("in");
  const [complexityText] = useQuery("complexity");
  const [coverageText] = useQuery("coverage");
  const [crapText] = useQuery("crap");
  const [only] = useQuery("only");
  const directories = useMemo(() => new Set(analysis.entries.map(directoryOf)), [analysis]);
  const directory = directories.size === 1 ? ([...directories][0] ?? "") : given; // one package only: its files say more
  const [complexity, coverage, crap] = [parseRange(complexityText), parseRange(coverageText), parseRange(crapText)];
  const inDirectory = useMemo(() => analysis.entries.filter(isChosen({ ...EVERY, directory })), [analysis, directory]);
  const chosen = useMemo(
    () => inDirectory.filter(isChosen({ text, directory: "", complexity, coverage, crap })).filter(isOnly(only, threshold)),
    [inDirectory, text, complexityText, coverageText, crapText, only],
  );
  const tiles = useMemo(() => tilesOf(inDirectory, threshold, directory ? (entry) => entry.file : directoryOf), [inDirectory, directory, threshold]);
  const choose = (one: Range | null, other: Range | null) => go(withQuery({ complexity: rangeText(one), coverage: rangeText(other) }));
  const functionPage = useCallback((entry: FunctionEntry) => functionAt(analysis.id, entry.key, isLatest ? "" : analysis.task_id), [analysis, isLatest]);
  const isAll = chosen.length === analysis.entries.length;
  return (
    <>
      <div class="panels">
        <Panel title={directory ? `Files of ${directoryName(directory)}` : "Risk by package"} note="area: complexity; colour: share of risky functions">
          <Treemap
            label={directory ? `Files of ${directoryName(directory)} by risk` : "Packages by risk"}
            tileName={directory ? "File" : "Package"}
            sizeName="Complexity"
            tiles={tiles}
            height={300}
            onOpen={(key) => (directory ? setText(key) : setDirectory(key))}
          />
          {given && (
            <p class="no-print">
              <button type="button" class="small" onClick={() => setDirectory("")}>
                All packages
              </button>
            </p>
          )}
        </Panel>
        <Panel title="Complexity against coverage" note="choose a dot, or draw a frame">
          <Scatter entries={inDirectory} threshold={threshold} complexity={complexity} coverage={coverage} onChoose={choose} at={functionPage} />
          <Bounds complexity={complexity} coverage={coverage} choose={choose} />
        </Panel>
      </div>
      <section class="list" aria-label="Functions" id="functions">
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
            {crap && `, CRAP over ${crap[0]}${crap[1] === Infinity ? "" : `, at most ${crap[1]}`}`}
            {only && `, only ${only === "risky" ? "risky ones" : "those not measured"}`}
          </span>
          <button type="button" disabled={isAll && !given} onClick={() => go(withQuery(NO_CHOICE))}>
            Show all
          </button>
        </div>
        {chosen.length === 0 ? <Empty title="No function matches" /> : <Functions entries={chosen} threshold={threshold} source={analysis.source} at={functionPage} />}
      </section>
    </>
  );
}

/** Score the stored coverage profile again, with the scoring flags that are set now; no tests are run. */
function Rescore({ analysis }: { analysis: Whole }) {
  if (!analysis.profile_digest) return null;
  return (
    <button type="button" class="small" title="Score the stored coverage profile again with the present settings; no tests are run" onClick={() => void rescore(analysis.repo_info.url, analysis.project)}>
      Rescore
    </button>
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
  const text = value === undefined || value === ANY_COMPLEXITY[1] || value === Infinity ? "" : String(value);
  return (
    <label>
      {shown} <input type="number" min={0} aria-label={label} value={text} onChange={(event) => set(event.currentTarget.value)} />
    </label>
  );
}

function Figure({ name, value, to, bad = false }: { name: string; value: string; to: string; bad?: boolean }) {
  const text = (
    <>
      <strong class={`figure${bad ? " bad" : ""}`}>{value}</strong> {name}
    </>
  );
  return <li>{to.startsWith("#") ? <a href={to}>{text}</a> : <Link to={to}>{text}</Link>}</li>;
}

interface PanelProps {
  title: string;
  note?: string;
  id?: string;
  noPrint?: boolean;
  children: ComponentChildren;
}

function Panel({ title, note, id, noPrint = false, children }: PanelProps) {
  return (
    <section class={`panel${noPrint ? " no-print" : ""}`} aria-label={title} id={id}>
      <header>
        <h2>{title}</h2>
        {note && <span class="muted no-print">{note}</span>}
      </header>
      {children}
    </section>
  );
}

/** A tile for each place, the largest TILES of them: the others are in the table. */
function tilesOf(entries: readonly FunctionEntry[], threshold: number, placeOf: (entry: FunctionEntry) => string): Tile[] {
  const found = new Map<string, { size: number; worst: number; functions: number; risky: number; unmeasured: number }>();
  for (const entry of entries) {
    const key = placeOf(entry);
    const tile = found.get(key) ?? { size: 0, worst: 0, functions: 0, risky: 0, unmeasured: 0 };
    tile.size += entry.cyclomatic;
    if (isMeasured(entry)) {
      tile.worst = Math.max(tile.worst, entry.crap);
      tile.functions += 1;
      tile.risky += isRisky(entry, threshold) ? 1 : 0;
    } else tile.unmeasured += 1;
    found.set(key, tile);
  }
  return [...found]
    .sort(([, a], [, b]) => b.size - a.size)
    .slice(0, TILES)
    .map(([key, { size, worst, functions, risky, unmeasured }]) => ({
      key,
      name: directoryName(key),
      label: directoryName(key).split("/").slice(-2).join("/"),
      size,
      functions,
      risky,
      about: [
        ...(functions ? [`highest CRAP ${score(worst)}`] : []),
        `complexity ${count(size)}`,
        ...(unmeasured ? [`${count(unmeasured)} not measured`] : []),
      ],
    }));
}
