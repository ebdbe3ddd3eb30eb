// The limits of a comparison: differences in the way of measuring, and functions that were not measured.

import { Link, withQuery } from "../../kit/page/router";
import { brokenText } from "../analysis/risk";
import type { Diff, Side } from "../analysis/types";
import { count, plural, shortCommit } from "../data/names";
import { isMeasured, stateText, unmeasuredOf } from "../data/risky";
import { analysisAt } from "../data/places";

export function Measured({ diff }: { diff: Diff }) {
  const { unmeasured: lost = 0, measured: found = 0 } = diff.counts;
  const isWhole = diff.break.length === 0 && !diff.partial && [diff.from, diff.to].every((side) => unmeasuredOf(side) === 0);
  return (
    <>
      {diff.break.length === 0 ? (
        <p>Both analyses were measured in the same way.</p>
      ) : (
        <p>
          <strong>Measured differently:</strong> {brokenText(diff.break)}. A difference of the values need not come from the code.
        </p>
      )}
      {diff.partial && <p>A report was shortened (--min, --top): a function that is new or gone here may only be left out of one report.</p>}
      {isWhole ? (
        <p>Every function of both analyses was measured.</p>
      ) : (
        <ul class="plain-list">
          {[diff.from, diff.to].map((side, index) => (
            <li key={index}>
              <Unmeasured side={side} id={diff.id} />
            </li>
          ))}
          {lost > 0 && (
            <li>
              <Link to={withQuery({ status: "unmeasured" })}>{plural(lost, "function")} lost the measurement</Link> <span class="muted">and cannot be compared</span>
            </li>
          )}
          {found > 0 && (
            <li>
              <Link to={withQuery({ status: "measured" })}>{plural(found, "function")} measured now</Link> <span class="muted">and not before</span>
            </li>
          )}
        </ul>
      )}
    </>
  );
}

/** The functions of one analysis whose coverage is not known, with the reasons. */
function Unmeasured({ side, id }: { side: Side; id: string }) {
  const commit = <code>{shortCommit(side.commit_sha)}</code>;
  const left = unmeasuredOf(side);
  if (left === 0) return <>Every function of {commit} was measured.</>;
  const reasons = Object.entries(side.states).filter(([state, times]) => times > 0 && !isMeasured({ state }));
  return (
    <>
      <Link to={`${analysisAt(id, side.task_id)}&only=unmeasured`}>{plural(left, "function")} not measured</Link> at {commit}
      <span class="muted">: {reasons.map(([state, times]) => `${stateText(state)} ${count(times)}`).join(", ")}</span>
    </>
  );
}
