// A function on both sides of a comparison: its source with the changed lines, and the coverage of each side.

import { useLayoutEffect, useRef } from "preact/hooks";
import { read } from "../../kit/data/http";
import { useLoad } from "../../kit/data/load";
import { Drawer } from "../../kit/page/drawer";
import { Link } from "../../kit/page/router";
import { ErrorPanel, Skeleton } from "../../kit/parts/states";
import { useTitle } from "../../kit/page/title";
import { isMissing } from "../analysis/risk";
import type { Diff } from "../analysis/types";
import { shortCommit } from "../data/names";
import { functionAt } from "../data/places";
import { coveredText, scoreText } from "../data/risky";
import { linesOf } from "../function/code";
import type { Shown } from "../function/types";
import type { At, Row } from "./rows";
import { pairsOf } from "./lines";
import "../function/function.css";
import "./sources.css";

interface Sides {
  before: Shown | null;
  after: Shown | null;
}

/** A function as of one side; null if that analysis does not have it. */
async function sideOf(diff: Diff, side: "from" | "to", at: At | null, signal: AbortSignal): Promise<Shown | null> {
  if (!at) return null;
  const query = new URLSearchParams({ at: diff[side].task_id, around: "0" });
  const path = `/api/repos/${diff.id}/functions/${encodeURIComponent(at.key)}?${query}`;
  return read<Shown>(path, signal).catch((error: unknown) => {
    if (isMissing(error)) return null;
    throw error;
  });
}

export function Sources({ diff, row, close }: { diff: Diff; row: Row; close: () => void }) {
  useTitle(`${row.name}, ${shortCommit(diff.from.commit_sha)} to ${shortCommit(diff.to.commit_sha)}`, 2);
  const { value, error, reload } = useLoad(
    async (signal): Promise<Sides> => {
      const [before, after] = await Promise.all([sideOf(diff, "from", row.before, signal), sideOf(diff, "to", row.after, signal)]);
      return { before, after };
    },
    [diff, row.key],
  );
  return (
    <Drawer title={row.name} close={close} isWide>
      {error ? <ErrorPanel error={error} retry={reload} /> : value ? <Both diff={diff} row={row} {...value} /> : <Skeleton lines={8} />}
    </Drawer>
  );
}

function Both({ diff, row, before, after }: Sides & { diff: Diff; row: Row }) {
  const isEqual = before?.source && after?.source && before.source.lines.join("\n") === after.source.lines.join("\n");
  return (
    <>
      <div class={`pair-heads${before && after ? "" : " is-single"}`}>
        {row.before && <Head diff={diff} side="from" shown={before} />}
        {row.after && <Head diff={diff} side="to" shown={after} />}
      </div>
      {isEqual && <p>The code is the same on both sides: only its coverage or its place changed.</p>}
      <Code before={before} after={after} />
    </>
  );
}

function Head({ diff, side, shown }: { diff: Diff; side: "from" | "to"; shown: Shown | null }) {
  const commit = <code>{shortCommit(diff[side].commit_sha)}</code>;
  if (!shown) return <p class="muted">{commit}: the analysis names the function in another way, and its source cannot be shown.</p>;
  return (
    <div>
      <h3>
        {side === "from" ? "Before" : "Now"}, at {commit}
      </h3>
      <p>
        CRAP <strong>{scoreText(shown)}</strong>, complexity {shown.cyclomatic}, {coveredText(shown)}
      </p>
      <p>
        <Link to={functionAt(diff.id, shown.key, shown.task_id)}>
          {shown.file}:{shown.line}
        </Link>
        {shown.link && (
          <>
            {" · "}
            <a href={shown.link} target="_blank" rel="noreferrer">
              on the repository's host
            </a>
          </>
        )}
      </p>
      {!shown.source && <p class="bad">The source is not shown: {shown.source_reason}.</p>}
      {shown.source && shown.blocks_reason && <p class="bad">No coverage is shown: {shown.blocks_reason}.</p>}
    </div>
  );
}

/** The lines of one side, each an element. */
const sideLines = (shown: Shown | null): HTMLElement[] => (shown?.source ? linesOf(shown, shown.source) : []);

const word = (text: string): HTMLElement => {
  const made = document.createElement("span");
  made.className = "code-word";
  made.textContent = text;
  return made;
};

function cellOf(line: HTMLElement | undefined, mark: "removed" | "added" | "same" | ""): HTMLElement {
  if (!line) {
    const blank = document.createElement("div");
    blank.className = "is-blank";
    return blank;
  }
  line.removeAttribute("id"); // a line of the same number may be on the other side
  if (mark) line.classList.add(`is-${mark}`);
  if (mark === "removed" || mark === "added") line.prepend(word(`${mark}: `));
  return line;
}

function Code({ before, after }: Sides) {
  const box = useRef<HTMLDivElement>(null);
  const isPair = Boolean(before?.source && after?.source);
  useLayoutEffect(() => {
    const element = box.current;
    if (!element) return;
    const [old, now] = [sideLines(before), sideLines(after)];
    const rows = isPair ? pairsOf(before?.source?.lines ?? [], after?.source?.lines ?? []) : (old.length ? old : now).map((_, index) => (old.length ? ([index, null] as const) : ([null, index] as const)));
    element.replaceChildren(
      ...rows.map(([one, other]) => {
        const row = document.createElement("div");
        row.className = "pair-row";
        const isSame = one !== null && other !== null && before?.source?.lines[one] === after?.source?.lines[other];
        const left = one === null ? undefined : old[one];
        const right = other === null ? undefined : now[other];
        if (isPair || left) row.append(cellOf(left, !isPair ? "" : isSame ? "same" : "removed"));
        if (isPair || right) row.append(cellOf(right, !isPair || isSame ? "" : "added"));
        return row;
      }),
    );
    element.querySelector(".is-removed, .is-added")?.scrollIntoView({ block: "center" });
  }, [before, after]);
  if (!before?.source && !after?.source) return null;
  return <div ref={box} class={`code pair-code${isPair ? "" : " is-single"}`} role="region" aria-label={isPair ? "Source of both sides" : "Source"} tabIndex={0} />;
}
