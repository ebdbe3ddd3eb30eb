// The quality gate: what it says of an analysis with the limits in the address, and the fields that set them.

import { read } from "../../kit/http";
import { useLoad } from "../../kit/load";
import { Pill } from "../../kit/pill";
import { go, Link, useQuery, withQuery } from "../../kit/router";
import { Copy, ErrorPanel, Skeleton } from "../../kit/states";
import { count, score } from "../names";
import type { Gate } from "./types";

/** Limits of the gate, by the names that the API and the command line have for them. */
const LIMITS: readonly { name: string; title: string; most?: number; isWhole?: true }[] = [
  { name: "max_new", title: "Most new risky functions", isWhole: true },
  { name: "max_worse", title: "Most functions that got worse", isWhole: true },
  { name: "max_exceeded", title: "Most risky functions", isWhole: true },
  { name: "max_crap", title: "Highest CRAP value" },
  { name: "max_average", title: "Highest average CRAP" },
  { name: "min_coverage", title: "Least coverage, %", most: 100 },
  { name: "max_uncovered", title: "Most packages without coverage", isWhole: true },
  { name: "threshold", title: "Threshold" },
];
const NAMES = [...LIMITS.map(({ name }) => name), "worse"];

const WHOLE = new Set(LIMITS.filter(({ isWhole }) => isWhole).map(({ name }) => name));

const isNumber = (name: string, text: string): boolean => (WHOLE.has(name) ? /^\d+$/ : /^\d+(\.\d+)?$/).test(text);

/** The limits in the address that are numbers, and those that are not. */
function limitsOf(query: URLSearchParams): { given: [string, string][]; wrong: string[] } {
  const named = NAMES.map((name): [string, string] => [name, query.get(name) ?? ""]).filter(([, text]) => text);
  const isRight = ([name, text]: [string, string]) => (name === "worse" ? text === "risky" : isNumber(name, text));
  return { given: named.filter(isRight), wrong: named.filter((each) => !isRight(each)).map(([name]) => name) };
}

const shellQuoted = (text: string): string => (/^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`);

function commandOf(url: string, project: string, given: readonly (readonly [string, string])[]): string {
  const options = given.map(([name, text]) => `--${name.replaceAll("_", "-")} ${text}`);
  return ["gctd gate", shellQuoted(url), ...(project === "." ? [] : ["--project", shellQuoted(project)]), ...options].join(" ");
}

export function Verdict({ id, task, url, project }: { id: string; task: string; url: string; project: string }) {
  const [worse, setWorse] = useQuery("worse");
  const { given, wrong } = limitsOf(new URLSearchParams(location.search));
  const query = new URLSearchParams([["to", task], ["limit", "5"], ...given]).toString();
  const { value, error, reload } = useLoad((signal) => read<Gate>(`/api/repos/${id}/gate?${query}`, signal), [id, query]);
  return (
    <>
      {wrong.length > 0 && <p class="bad">These limits of the address are left out, because they are not the numbers that the gate takes: {wrong.join(", ")}.</p>}
      {error && !value ? <ErrorPanel error={error} retry={reload} /> : null}
      {!value && !error && <Skeleton />}
      {value && <Said gate={value} />}
      <details class="limits" open={given.length > 0}>
        <summary>Limits</summary>
        <p class="muted">They are in the address of this page. An empty field is the gate's own: no new risky function, no function that got worse.</p>
        <div class="limit-fields">
          {LIMITS.map((limit) => (
            <Limit key={limit.name} {...limit} />
          ))}
        </div>
        <label class="line">
          <input type="checkbox" checked={worse === "risky"} onChange={() => setWorse(worse === "risky" ? "" : "risky", { replace: true })} />
          Only risky functions count as worse
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
        value={text}
        onChange={(event) => event.currentTarget.validity.valid && go(withQuery({ [name]: event.currentTarget.value }), { replace: true })}
      />
    </label>
  );
}

function Said({ gate }: { gate: Gate }) {
  const more = gate.offending - gate.functions.length;
  return (
    <>
      <p class="line">
        <Pill state={gate.passed ? "completed" : "failed"} word={gate.passed ? "passed" : "not passed"} />
      </p>
      <ul class="plain-list">
        {gate.checks.map((check) => (
          <li key={check.name}>
            <strong>{check.value === null ? "–" : count(check.value)}</strong> {check.text}
            {check.passed === null && <span class="muted">: not known, there is no earlier analysis</span>}
            {check.passed === false && <span class="bad">, the limit is {check.limit}</span>}
          </li>
        ))}
      </ul>
      {gate.functions.length > 0 && (
        <ul class="plain-list">
          {gate.functions.map((one) => (
            <li key={`${one.after.file} ${one.after.line}`}>
              <Link to={withQuery({ q: `${one.function} ${one.after.file}`, in: null, complexity: null, coverage: null, crap: null })}>
                <code>{one.function}</code>
              </Link>{" "}
              {one.before ? `${score(one.before.crap)} → ` : "new, "}
              {score(one.after.crap)}
            </li>
          ))}
          {more > 0 && <li class="muted">and {count(more)} more</li>}
        </ul>
      )}
    </>
  );
}
