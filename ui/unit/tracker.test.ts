// Rules of the dashboard: addresses of repositories, filters, names, risk, choices of functions, colours of source, lines of a comparison.

import assert from "node:assert/strict";
import { test } from "node:test";
import { json, service } from "./browser.ts";
import { coverageNeeded, directoryOf, isChosen, EVERY, parseRange, rangeText, thresholdOf } from "../gctd/analysis/risk";
import { pairsOf } from "../gctd/compare/lines";
import { canonical, problemOf } from "../gctd/data/address";
import { filterOf, valueOf, withValue } from "../gctd/data/filter";
import { plural, projectName, repoName, stageOf } from "../gctd/data/names";
import { functionAt } from "../gctd/data/places";
import { regressions } from "../gctd/data/regressions";
import { isRisky, unmeasuredOf } from "../gctd/data/risky";
import type { Analysis, FunctionEntry, HistoryEntry, Task } from "../gctd/data/types";
import { layersOf, segmentsOf } from "../gctd/function/layers";
import { partsOf } from "../gctd/function/lexer";
import type { Shown } from "../gctd/function/types";
import { compare } from "../kit/data/positions";
import { age, duration, utc } from "../kit/parts/time";

for (const [address, words] of [
  ["http://example.com/owner/new", /use https/],
  ["https://me:secret@example.com/owner/new", /credentials/],
  ["https://example.com", /path of the repository is missing/],
  ["https://host/owner", /host's name is missing/],
  ["example.com/owner/a b", /no spaces/],
  ["https://example.com/owner/new?tab=1", /Leave out what follows/],
  ["ftp://example.com/owner/new", /The scheme ftp is not taken/],
] as const) {
  test(`the address ${address} is refused`, () => assert.match(problemOf(address) ?? "", words));
}

test("addresses that may be right have no problem", () => {
  for (const address of ["", "example.com/owner/new", "https://example.com:8443/a/b.git", "git@example.com:a/b", "file:///srv/a"]) assert.equal(problemOf(address), null);
});

test("an address is known without its scheme's absence and without .git", () => {
  assert.deepEqual(["example.com/owner/new.git/", "https://example.com/a/b.git"].map(canonical), ["https://example.com/owner/new", "https://example.com/a/b"]);
});

const task = (part: Partial<Task>): Task =>
  ({ id: "task-1", repo_url: "https://example.com/owner/shop", project: ".", ref: "main", status: "completed", worker: "", reason: "", engine: "", stage: "", attempt: 1, seen: false, ...part }) as Task;

test("a filter of tasks has names and words, and leaves out what was seen", () => {
  for (const [filter, part, isWanted] of [
    ["status:failed,expired", { status: "expired" }, true],
    ["status:failed", { status: "completed" }, false],
    ["shop p2", { project: "p2" }, true],
    ["shop p2", { project: "p1" }, false],
    ["attempt:>1", { attempt: 2 }, true],
    ["attempt:many", { attempt: 2 }, false],
    ["", { seen: true }, false],
    ["is:seen", { seen: true }, true],
    ["stage:test", { status: "running", stage: "test" }, true],
    ["stage:test", { status: "completed", stage: "test" }, false],
  ] as const) {
    assert.equal(filterOf(filter)(task(part)), isWanted, filter);
  }
});

test("a value of a filter is set and removed", () => {
  assert.equal(valueOf("shop status:failed", "status"), "failed");
  assert.equal(withValue("shop status:failed", "status", "queued"), "status:queued shop");
  assert.equal(withValue("shop status:failed", "status", ""), "shop");
});

test("names are short", () => {
  assert.equal(repoName("file:///srv/git/shop"), "shop");
  assert.equal(projectName("https://example.com/a/b", "."), "example.com/a/b");
  assert.equal(stageOf({ stage: "test", progress: { done: 12, total: 31, unit: "packages", running: ["a", "b", "c"] } }), "test, 12 of 31 packages, running a, b and 1 more");
  assert.deepEqual([plural(1, "task"), plural(1_200, "task")], ["1 task", "1,200 tasks"]);
  assert.equal(functionAt("a", "cmd:init@serve.go", "task-1"), "/analyses/a/functions/cmd:init%40serve.go?task=task-1");
});

test("times are short, and exact in UTC", () => {
  assert.deepEqual([400, 41_000, 123_000, 11_100_000, 4 * 86_400_000].map(duration), ["0.4 s", "41 s", "2 m 03 s", "3 h 05 m", "4 d"]);
  assert.deepEqual([0, 12, 300, 7_200, 400_000].map((seconds) => age(0, 1000 * seconds)), ["now", "12 s", "5 m", "2 h", "4 d"]);
  assert.equal(utc("2026-11-20T12:24:04.123Z"), "2026-11-20 12:24:04 UTC");
});

test("positions are in the order of the log", () => {
  assert.deepEqual(["10", "9.2", "9", "9.10"].sort(compare), ["9", "9.2", "9.10", "10"]);
});

const entry = (part: Partial<FunctionEntry>): FunctionEntry =>
  ({ file: "pricing/price.go", package: "pricing", function: "Huge", cyclomatic: 40, coverage: 100, crap: 40, state: "measured", ...part }) as FunctionEntry;

test("what was not measured is not risky, and is counted apart", () => {
  assert(isRisky(entry({}), 30));
  assert(!isRisky(entry({ state: "build_failed" }), 30));
  assert.equal(unmeasuredOf({ states: { measured: 4, build_failed: 2, excluded: 3, no_tests: 1 } }), 2);
});

test("the coverage that is needed follows from complexity and threshold", () => {
  assert.equal(coverageNeeded(40, 30), null);
  assert.equal(coverageNeeded(5, 30), 0);
  assert.equal(Math.round(10 * (coverageNeeded(9, 30) ?? 0)), 362);
  assert.deepEqual([thresholdOf([]), thresholdOf(["--threshold=8", "-x", "--threshold=12"])], [30, 12]);
});

test("functions are chosen by words, directory and ranges, and a range of values chooses only what was measured", () => {
  assert.deepEqual(["3-17", "30-", "x"].map(parseRange), [[3, 17], [30, Infinity], null]);
  assert.equal(rangeText([30, Infinity]), "30-");
  assert.equal(directoryOf(entry({ file: "main.go" })), ".");
  assert(isChosen({ ...EVERY, text: "price huge" })(entry({})));
  assert(!isChosen({ ...EVERY, directory: "." })(entry({})));
  assert(!isChosen({ ...EVERY, crap: [40, 60] })(entry({})));
  assert(isChosen({ ...EVERY, crap: [30, 40] })(entry({})));
  assert(!isChosen({ ...EVERY, coverage: [0, 100] })(entry({ state: "build_failed" })));
});

test("a project got worse by its analysis of a week ago", async () => {
  const at = (days: number) => new Date(Date.now() - days * 86_400_000).toISOString();
  const point = (days: number, average: number, broke = false) => ({ analyzed_at: at(days), measured: { average, exceeded: average > 10 ? 1 : 0 }, break: broke ? [{ what: "go", before: "1", after: "2" }] : [] }) as unknown as HistoryEntry;
  const histories: Record<string, HistoryEntry[]> = { worse: [point(0, 12), point(3, 9, true), point(8, 8)], better: [point(0, 7), point(8, 8)], new: [point(0, 7)] };
  service.answer = ({ path }) => json(histories[path.split("/")[3] ?? ""] ?? []);
  const analyses = Object.entries(histories).map(([id, [newest]]) => ({ ...newest, id, repo_info: { ref: "main" } }) as unknown as Analysis);
  const [only, ...others] = await regressions(analyses, new AbortController().signal);
  assert.equal(others.length, 0);
  assert.deepEqual([only?.analysis.id, only?.before, only?.by, only?.exceeded, only?.measured], ["worse", 8, 4, 1, true]);
});

test("source has colours for words, texts, numbers and comments", () => {
  const text = 'func F() { return `a` + "b\\"" + \'c\' + 0x1F } // end';
  assert.deepEqual(partsOf(text).map(({ from, to, kind }) => [text.slice(from, to), kind]), [
    ["func", "keyword"],
    ["return", "keyword"],
    ["`a`", "string"],
    ['"b\\""', "string"],
    ["'c'", "string"],
    ["0x1F", "number"],
    ["// end", "comment"],
  ]);
});

test("a line shows code that was not run, branches, and hidden characters by their number", () => {
  const line = "\tif \u00e9 == 7 { return \"A\u202e\" }";
  const bytes = new TextEncoder().encode(line.slice(0, line.indexOf("{"))).length + 1;
  const shown = {
    line: 10,
    end_line: 10,
    source: { first: 10, lines: [line], marks: "~", total: 1 },
    branches: [{ line: 10, column: 2, token: "if" }],
    blocks: [{ start_line: 10, start_column: bytes, end_line: 10, end_column: 99, covered: false }],
  } as unknown as Shown;
  const segments = segmentsOf(line, layersOf(shown)[0] ?? []);
  const classesOf = (text: string) => segments.find((segment) => segment.text.includes(text))?.classes;
  assert.equal(classesOf("if"), "t-keyword t-branch");
  assert.equal(classesOf("7"), "t-number");
  assert.match(classesOf("return") ?? "", /t-unrun/);
  assert(segments.some(({ text, hidden }) => text === "U+202E" && hidden));
});

test("a comment that begins before the function does not colour the function", () => {
  const shown = { line: 2, end_line: 2, source: { first: 1, lines: ["/* open", "func F() {}"], marks: "  ", total: 2 }, branches: [], blocks: [] } as unknown as Shown;
  assert.deepEqual(layersOf(shown)[1]?.map(({ kind }) => kind), ["keyword"]);
});

test("a comparison shows equal lines in one row, and replaced lines next to each other", () => {
  assert.deepEqual(pairsOf(["a", "b", "c"], ["a", "x", "c", "d"]), [
    [0, 0],
    [1, 1],
    [2, 2],
    [null, 3],
  ]);
  assert.deepEqual(pairsOf([], ["a"]), [[null, 0]]);
});
