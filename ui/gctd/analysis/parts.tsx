// What stands beside the functions of an analysis: distribution, packages without coverage, the gate, exports, the badge.

import { useState } from "preact/hooks";
import { read } from "../../kit/http";
import { useLoad } from "../../kit/load";
import { Pill } from "../../kit/pill";
import { Copy, ErrorPanel, Skeleton } from "../../kit/states";
import { riskStep } from "../../kit/treemap";
import { count, plural, score } from "../names";
import type { FunctionEntry } from "../types";
import type { Gate, Whole } from "./types";

const BOUNDS = [1, 2, 5, 8, 15, 30, 60, 100, Infinity];

/** How many functions have which values. */
export function Distribution({ entries, threshold }: { entries: readonly FunctionEntry[]; threshold: number }) {
  const counts = BOUNDS.map(() => 0);
  for (const { crap } of entries) {
    const index = BOUNDS.findIndex((bound) => crap <= bound);
    counts[index] = (counts[index] ?? 0) + 1;
  }
  const most = Math.max(1, ...counts);
  return (
    <table class="plain distribution">
      <caption>Functions by their CRAP value; over {threshold} is risky</caption>
      <tbody>
        {BOUNDS.map((bound, index) => (
          <tr key={bound}>
            <th scope="row">{bound === Infinity ? `over ${BOUNDS[index - 1]}` : `to ${bound}`}</th>
            <td>
              <span class="bar" aria-hidden="true">
                <span class={`fill-${riskStep(bound)}`} style={{ width: `${(100 * (counts[index] ?? 0)) / most}%` }} />
              </span>
            </td>
            <td class="right number">{count(counts[index] ?? 0)}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

/** What the numbers do not say. */
export function Gaps({ analysis: { uncovered, warnings } }: { analysis: Whole }) {
  if (uncovered.length === 0 && warnings.length === 0) return <p class="good">Every package has coverage, and no file was left out.</p>;
  return (
    <>
      {uncovered.length > 0 && <Reasons caption={`${plural(uncovered.length, "package")} without coverage; their functions count as not covered`} items={uncovered} />}
      {warnings.length > 0 && <Reasons caption="Not in the numbers" items={warnings} />}
    </>
  );
}

function Reasons({ caption, items }: { caption: string; items: readonly { path: string; reason: string }[] }) {
  return (
    <div class="scrolled" tabIndex={0} role="region" aria-label={caption}>
      <table class="plain">
        <caption>{caption}</caption>
        <tbody>
          {items.map(({ path, reason }, index) => (
            <tr key={index}>
              <th scope="row">
                <code>{path || "the module"}</code>
              </th>
              <td>{reason}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

/** What the gate says with its usual limits: nothing new that is risky, nothing worse. */
export function Verdict({ id, task }: { id: string; task: string }) {
  const [worse, setWorse] = useState<"any" | "risky">("any");
  const { value, error, reload } = useLoad((signal) => read<Gate>(`/api/repos/${id}/gate?to=${task}&worse=${worse}&limit=5`, signal), [id, task, worse]);
  if (error && !value) return <ErrorPanel error={error} retry={reload} />;
  if (!value) return <Skeleton />;
  const more = value.offending - value.functions.length;
  return (
    <>
      <p class="line">
        <Pill state={value.passed ? "completed" : "failed"} word={value.passed ? "passed" : "not passed"} />
        <label class="line">
          <input type="checkbox" checked={worse === "risky"} onChange={() => setWorse(worse === "any" ? "risky" : "any")} />
          only what is risky counts as worse
        </label>
      </p>
      <ul class="plain-list">
        {value.checks.map((check) => (
          <li key={check.name}>
            <strong>{check.value === null ? "–" : count(check.value)}</strong> {check.text}
            {check.passed === null && <span class="muted">: there is no analysis before</span>}
            {check.passed === false && <span class="bad">, at most {check.limit}</span>}
          </li>
        ))}
      </ul>
      {value.functions.length > 0 && (
        <ul class="plain-list">
          {value.functions.map((one) => (
            <li key={`${one.after.file} ${one.after.line}`}>
              <code>{one.function}</code> {one.before ? `${score(one.before.crap)} → ` : "new, "}
              {score(one.after.crap)}
            </li>
          ))}
          {more > 0 && <li class="muted">and {count(more)} more</li>}
        </ul>
      )}
    </>
  );
}

const FORMATS = { json: "JSON", csv: "CSV", sarif: "SARIF", markdown: "Markdown comment", "go-crap": "go-crap report" };
const METRICS = ["average", "exceeded", "coverage", "grade", "total", "functions"];

/** The analysis as files, and a badge of the project for pages elsewhere. */
export function Exports({ analysis }: { analysis: Whole }) {
  const [metric, setMetric] = useState("average");
  const badge = `/api/repos/${analysis.id}/badge.svg?metric=${metric}`;
  const snippet = `[![CRAP](${location.origin}${badge})](${location.origin}/analyses/${analysis.id})`;
  return (
    <>
      <ul class="chips">
        {Object.entries(FORMATS).map(([format, name]) => (
          <li key={format}>
            <a href={`/api/tasks/${analysis.task_id}/export?format=${format}`} download>
              {name}
            </a>
          </li>
        ))}
        {analysis.profile_digest && (
          <li>
            <a href={`/api/tasks/${analysis.task_id}/profile`} download={`${analysis.task_id}.out`}>
              Coverage profile
            </a>
          </li>
        )}
      </ul>
      <p class="line">
        <label class="line">
          Badge
          <select value={metric} onChange={(event) => setMetric(event.currentTarget.value)}>
            {METRICS.map((name) => (
              <option key={name}>{name}</option>
            ))}
          </select>
        </label>
        <img src={badge} alt={`Badge: ${metric}`} height={20} />
        <Copy text={snippet} what="Markdown" />
      </p>
      <p>
        <code>{snippet}</code>
      </p>
    </>
  );
}
