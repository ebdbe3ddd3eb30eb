// The figures of two analyses side by side, each with a link to the functions behind it.

import { Link } from "../../kit/page/router";
import type { Diff } from "../analysis/types";
import { count, score } from "../data/names";
import { analysisAt } from "../data/places";

const whole = (value: number): string => count(Math.round(value));

export function Figures({ diff }: { diff: Diff }) {
  const [before, after] = [diff.from.measured, diff.to.measured];
  const at = (rest = "") => ({ from: `${analysisAt(diff.id, diff.from.task_id)}${rest}`, to: `${analysisAt(diff.id, diff.to.task_id)}${rest}` });
  const rows = [
    { name: "average CRAP", values: [before.average, after.average], show: score, links: at(), isBad: true },
    { name: "risky functions", values: [before.exceeded, after.exceeded], show: count, links: at("&only=risky"), isBad: true },
    { name: "functions", values: [before.total_funcs, after.total_funcs], show: count, links: at(), isBad: false },
    { name: "total CRAP", values: [before.combined, after.combined], show: whole, links: at(), isBad: true },
  ] as const;
  return (
    <ul class="figures" aria-label="Figures">
      {rows.map(({ name, values: [old, now], show, links, isBad }) => {
        const by = show(Math.abs(now - old));
        const isEqual = show(old) === show(now);
        return (
          <li key={name}>
            <Link to={links.from}>{show(old)}</Link> → <Link to={links.to}>
              <strong class="figure">{show(now)}</strong>
            </Link>
            {!isEqual && <span class={isBad ? (now > old ? "bad" : "good") : ""}>{`${now > old ? "+" : "−"}${by}`}</span>} {name}
          </li>
        );
      })}
    </ul>
  );
}
