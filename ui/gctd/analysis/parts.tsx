// The parts of an analysis around its functions: distribution, packages without coverage, exports, the badge.

import { useState } from "preact/hooks";
import { Copy } from "../../kit/parts/states";
import { Link, withQuery } from "../../kit/page/router";
import { valueStep } from "../../kit/charts/scale";
import { count, plural } from "../data/names";
import { isMeasured } from "../data/risky";
import { rangeText } from "./risk";
import type { FunctionEntry } from "../data/types";
import type { Whole } from "./types";

const BOUNDS = [1, 2, 5, 8, 15, 30, 60, 100, Infinity];

/** The upper ends of the bars: the threshold is one of them, so that each bar is risky as a whole or not at all. */
const boundsOf = (threshold: number): readonly number[] => [...new Set([...BOUNDS, threshold])].sort((a, b) => a - b);

/** How many functions have which values, and how many were not measured; each bar links to its functions. */
export function Distribution({ entries, threshold }: { entries: readonly FunctionEntry[]; threshold: number }) {
  const bounds = boundsOf(threshold);
  const counts = bounds.map(() => 0);
  const measured = entries.filter(isMeasured);
  for (const { crap } of measured) {
    const index = bounds.findIndex((bound) => crap <= bound);
    counts[index] = (counts[index] ?? 0) + 1;
  }
  const most = Math.max(1, ...counts);
  const unmeasured = entries.length - measured.length;
  return (
    <table class="plain distribution">
      <caption>Functions by their CRAP value; above {threshold} a function is risky</caption>
      <tbody>
        {bounds.map((bound, index) => {
          const from = bounds[index - 1] ?? 0;
          return (
            <tr key={bound}>
              <th scope="row">
                <Link to={withQuery({ crap: rangeText([from, bound]), q: null, in: null, complexity: null, coverage: null, only: null })}>
                  {bound === Infinity ? `over ${from}` : `to ${bound}`}
                </Link>
              </th>
              <td>
                <span class="bar" aria-hidden="true">
                  <span class={`fill-${valueStep(bound, threshold)}`} style={{ width: `${(100 * (counts[index] ?? 0)) / most}%` }} />
                </span>
              </td>
              <td class="right number">{count(counts[index] ?? 0)}</td>
            </tr>
          );
        })}
        {unmeasured > 0 && (
          <tr>
            <th scope="row">
              <Link to={withQuery({ crap: null, q: null, in: null, complexity: null, coverage: null, only: "unmeasured" })}>not measured</Link>
            </th>
            <td />
            <td class="right number">{count(unmeasured)}</td>
          </tr>
        )}
      </tbody>
    </table>
  );
}

/** Packages and files of which the numbers say nothing, or less. */
export function Gaps({ analysis: { uncovered, warnings } }: { analysis: Whole }) {
  if (uncovered.length === 0 && warnings.length === 0) return <p class="good">Every package has coverage, and no file was left out.</p>;
  return (
    <>
      {uncovered.length > 0 && <Reasons caption={`${plural(uncovered.length, "package")} without coverage`} items={uncovered} />}
      {warnings.length > 0 && <Reasons caption="Left out of the numbers" items={warnings} />}
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

const FORMATS = { json: "JSON", csv: "CSV", sarif: "SARIF", markdown: "Markdown comment", "go-crap": "go-crap report" };
/** Metrics of a badge, by their names in the address. */
const METRICS = { average: "average CRAP", exceeded: "risky functions", coverage: "coverage", grade: "grade", total: "total CRAP", functions: "functions" } as const;

/** The analysis as files, and a badge of the project for pages elsewhere. */
export function Exports({ analysis }: { analysis: Whole }) {
  const [metric, setMetric] = useState<keyof typeof METRICS>("average");
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
          <select value={metric} onChange={(event) => setMetric(event.currentTarget.value as keyof typeof METRICS)}>
            {Object.entries(METRICS).map(([name, shown]) => (
              <option key={name} value={name}>
                {shown}
              </option>
            ))}
          </select>
        </label>
        <img src={badge} alt={`Badge: ${METRICS[metric]}`} height={20} />
        <Copy text={snippet} what="Markdown" />
      </p>
      <p>
        <code>{snippet}</code>
      </p>
    </>
  );
}
