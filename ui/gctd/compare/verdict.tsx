// The gate's verdict on the newer of two analyses, with the older as its base.

import { Problem, read } from "../../kit/data/http";
import { useLoad } from "../../kit/data/load";
import { useQuery } from "../../kit/page/router";
import { ErrorPanel, Skeleton } from "../../kit/parts/states";
import { Said, useJudgedAgain } from "../analysis/gate";
import type { Diff, Gate } from "../analysis/types";

/** The address of a judgement: of this pair, or the stored one of the newer commit against its base. */
export function judgementPath({ id, from, to }: Diff, form: "gate" | "gate.md", against: "pair" | "base", base = ""): string {
  const query = new URLSearchParams({ to: to.task_id });
  if (form === "gate") query.set("limit", "5");
  if (against === "pair") query.set("from", from.task_id);
  else if (base) query.set("base", base);
  return `/api/repos/${id}/${form}?${query}`;
}

/** The stored verdict if it is of these two analyses, else the judgement of now. */
async function judged(diff: Diff, base: string, signal: AbortSignal): Promise<Gate> {
  const stored = await read<Gate>(judgementPath(diff, "gate", "base", base), signal).catch((error: unknown) => {
    // the base may be gone from the repository, and may be the commit itself by now
    if (error instanceof Problem && (error.status === 400 || error.status === 404)) return null;
    throw error;
  });
  if (stored?.verdict && stored.from?.task_id === diff.from.task_id) return stored;
  return read<Gate>(judgementPath(diff, "gate", "pair"), signal);
}

export function PairVerdict({ diff }: { diff: Diff }) {
  const [base] = useQuery("base");
  const isOneCommit = diff.from.commit_sha === diff.to.commit_sha;
  const { value, error, reload } = useLoad((signal) => (isOneCommit ? Promise.resolve(null) : judged(diff, base, signal)), [diff, base]);
  useJudgedAgain(diff.id, reload);
  if (isOneCommit) return <p class="muted">Both analyses are of one commit: the gate judges the changes between two commits.</p>;
  if (error) return <ErrorPanel error={error} retry={reload} />;
  if (!value) return <Skeleton />;
  return (
    <>
      <Said gate={value} id={diff.id} isPair />
      <p class="muted">{value.verdict ? "This is the stored verdict on the commit." : "These are the limits that a project has by default. This verdict is not stored."}</p>
    </>
  );
}
