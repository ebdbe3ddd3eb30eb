// The quality gate: its verdict on an analysis with the limits in the address, and the fields that set them.

import { read } from "../../kit/data/http";
import type { Live } from "../../kit/data/live";
import { useAgain, useLoad } from "../../kit/data/load";
import { Pill } from "../../kit/parts/pill";
import { go, Link, useQuery, withQuery } from "../../kit/page/router";
import { Copy, ErrorPanel, Skeleton } from "../../kit/parts/states";
import { useEvents } from "../data/live";
import { count, plural, score, shortCommit } from "../data/names";
import { comparisonAt, functionAt } from "../data/places";
import type { Task } from "../data/types";
import type { Gate } from "./types";

/** Limits of the gate, by the names that the API and the command line have for them. */
const LIMITS: readonly { name: string; title: string; most?: number; isWhole?: true }[] = [
  { name: "max_new", title: "Most new risky functions", isWhole: true },
  { name: "max_worse", title: "Most functions that got worse", isWhole: true },
  { name: "max_excluded", title: "Most functions that leave the measured set", isWhole: true },
  { name: "max_exceeded", title: "Most risky functions", isWhole: true },
  { name: "max_crap", title: "Highest CRAP value" },
  { name: "max_average", title: "Highest average CRAP" },
  { name: "min_coverage", title: "Least coverage, %", most: 100 },
  { name: "max_uncovered", title: "Most packages without coverage", isWhole: true },
  { name: "threshold", title: "Threshold" },
];
const WORDS: Readonly<Record<string, RegExp>> = { worse: /^(any|risky)$/, base: /^\S+$/, require_measured: /^true$/ };
const NAMES = [...LIMITS.map(({ name }) => name), ...Object.keys(WORDS)];

const WHOLE = new Set(LIMITS.filter(({ isWhole }) => isWhole).map(({ name }) => name));

const isNumber = (name: string, text: string): boolean => (WHOLE.has(name) ? /^\d+$/ : /^\d+(\.\d+)?$/).test(text);

/** The rules in the address that the gate takes, and the names of the others. */
function limitsOf(query: URLSearchParams): { given: [string, string][]; wrong: string[] } {
  const named = NAMES.map((name): [string, string] => [name, query.get(name) ?? ""]).filter(([, text]) => text);
  const isRight = ([name, text]: [string, string]) => WORDS[name]?.test(text) ?? isNumber(name, text);
  return { given: named.filter(isRight), wrong: named.filter((each) => !isRight(each)).map(([name]) => name) };
}

const shellQuoted = (text: string): string => (/^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`);

function commandOf(url: string, project: string, given: readonly (readonly [string, string])[]): string {
  const options = given.map(([name, text]) => `--${name.replaceAll("_", "-")}${name === "require_measured" ? "" : ` ${shellQuoted(text)}`}`);
  return ["gctd gate", shellQuoted(url), ...(project === "." ? [] : ["--project", shellQuoted(project)]), ...options].join(" ");
}

/** Judge again after each verdict on the project and each analysis of it, such as the analysis of a base, and if one may have been missed. */
export function useJudgedAgain(id: string, reload: () => void): void {
  const isOurs = ({ name, data }: Live) =>
    (name === "verdict" || (name === "task" && (data as Task).status === "completed")) && (data as { analysis_id?: string }).analysis_id === id;
  useAgain(reload, useEvents(isOurs, id));
}

export function Verdict({ id, task, url, project }: { id: string; task: string; url: string; project: string }) {
  const [worse, setWorse] = useQuery("worse");
  const [measured, setMeasured] = useQuery("require_measured");
  const [base, setBase] = useQuery("base");
  const { given, wrong } = limitsOf(new URLSearchParams(location.search));
  const query = new URLSearchParams([["to", task], ["limit", "5"], ...given]).toString();
  const { value, error, reload } = useLoad((signal) => read<Gate>(`/api/repos/${id}/gate?${query}`, signal), [id, query]);
  useJudgedAgain(id, reload);
  return (
    <>
      {wrong.length > 0 && <p class="bad">These limits of the address are left out, because the gate does not take their values: {wrong.join(", ")}.</p>}
      {error ? <ErrorPanel error={error} retry={reload} /> : null}
      {!value && !error && <Skeleton />}
      {value && !error && <Said gate={value} id={id} />}
      <details class="limits" open={given.length > 0}>
        <summary>Limits</summary>
        <p class="muted">
          They are in the address of this page. An empty field is the gate's own: no new risky function, no risky function that got worse,
          and as base the last other commit that was analysed on the same ref.
        </p>
        <div class="limit-fields">
          <label>
            Base: branch, tag or commit
            <input type="text" value={base} spellcheck={false} onChange={(event) => setBase(event.currentTarget.value.trim(), { replace: true })} />
          </label>
          {LIMITS.map((limit) => (
            <Limit key={limit.name} {...limit} />
          ))}
        </div>
        <label class="line">
          <input type="checkbox" checked={worse === "any"} onChange={() => setWorse(worse === "any" ? "" : "any", { replace: true })} />
          Every function that got worse counts
        </label>
        <label class="line">
          <input
            type="checkbox"
            checked={measured === "true"}
            onChange={() => setMeasured(measured === "true" ? "" : "true", { replace: true })}
          />
          Functions that are not measured fail the gate
        </label>
        <p class="line">
          <code>{commandOf(url, project, given)}</code>
          <Copy text={commandOf(url, project, given)} what="command" />
        </p>
      </details>
    </>
  );
}

function Limit({ name, title, most, isWhole }: (typeof LIMITS)[number]) {
  const [text] = useQuery(name);
  return (
    <label>
      {title}
      <input
        type="number"
        min={0}
        max={most}
        step={isWhole ? 1 : "any"}
        value={isNumber(name, text) ? text : ""}
        onChange={(event) => event.currentTarget.validity.valid && go(withQuery({ [name]: event.currentTarget.value }), { replace: true })}
      />
    </label>
  );
}

/** Functions that fail no check, by name. */
function Named({ all, some, what }: { all: number; some: readonly { function: string }[]; what: string }) {
  if (all === 0) return null;
  return (
    <p>
      {plural(all, "function")} {what}: {some.map(({ function: name }) => name).join(", ")}
      {all > some.length && ", …"}
    </p>
  );
}

const RESULTS = { passed: "completed", failed: "failed", unknown: "unknown" } as const;
const WORDS_OF = { passed: "passed", failed: "not passed", unknown: "unknown" } as const;

/** A judgement: its result, checks and functions. `isPair`: the page has both analyses. */
export function Said({ gate, id, isPair = false }: { gate: Gate; id: string; isPair?: boolean }) {
  const more = gate.offending - gate.functions.length;
  return (
    <>
      <p class="line">
        <Pill state={RESULTS[gate.result]} word={WORDS_OF[gate.result]} />
        {gate.from && (
          <span>
            compared with{" "}
            {isPair ? (
              <code>{shortCommit(gate.from.commit_sha)}</code>
            ) : (
              <Link to={comparisonAt(gate.id, gate.from.task_id, gate.to.task_id)}>
                <code>{shortCommit(gate.from.commit_sha)}</code>
              </Link>
            )}
            {gate.base.kind && ` (${gate.base.kind})`}
          </span>
        )}
        {gate.reason && <span>{gate.reason}</span>}
      </p>
      <ul class="plain-list">
        {gate.checks.map((check) => (
          <li key={check.name}>
            <strong>{check.value === null ? "–" : count(check.value)}</strong> {check.text}
            {check.passed === null && <span class="muted">: not known</span>}
            {check.passed === false && <span class="bad">, the limit is {check.limit}</span>}
          </li>
        ))}
      </ul>
      {gate.functions.length > 0 && (
        <ul class="plain-list">
          {gate.functions.map((one) => (
            <li key={one.after.key}>
              <Link to={functionAt(id, one.after.key, gate.to.task_id)}>
                <code>{one.function}</code>
              </Link>{" "}
              {one.before ? `${score(one.before.crap)} → ` : "new, "}
              {score(one.after.crap)}
            </li>
          ))}
          {more > 0 && <li class="muted">and {count(more)} more</li>}
        </ul>
      )}
      <Named all={gate.rising} some={gate.worsened} what="also worse" />
      <Named all={gate.lacking} some={gate.unmeasured} what="not measured" />
      <Named all={gate.leaving} some={gate.excluded} what="excluded by this change" />
    </>
  );
}
