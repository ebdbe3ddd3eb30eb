// A sign on a page that was read once: its project has a newer analysis by now.

import { useEffect, useState } from "preact/hooks";
import { ask, textOf } from "../../kit/data/http";
import type { Live } from "../../kit/data/live";
import { isMissing } from "./risk";
import { stream } from "../data/live";
import type { Analysis, Task } from "../data/types";

interface Props {
  /** Of all analyses of the project. */
  id: string;
  /** The tasks of the analyses that the page has. */
  known: readonly string[];
  reload: () => void;
}

/** The task of the latest analysis, or why it is not known. */
interface Latest {
  task: string;
  problem: string;
}

/** The latest analysis is looked up after each analysis of the project, and when events may have been missed. */
export function Newer({ id, known, reload }: Props) {
  const [latest, setLatest] = useState<Latest | null>(null);
  useEffect(() => {
    let looking = new AbortController();
    const look = () => {
      looking.abort();
      looking = new AbortController();
      const { signal } = looking;
      ask<Analysis>("GET", `/api/repos/${encodeURIComponent(id)}?entries=0`, { signal }).then(
        ({ body }) => signal.aborted || setLatest({ task: body.task_id, problem: "" }),
        (error) => signal.aborted || setLatest(isMissing(error) ? null : { task: "", problem: textOf(error) }),
      );
    };
    const isOurs = ({ name, data }: Live) => name === "task" && (data as Task).status === "completed" && (data as Task).analysis_id === id;
    const stop = stream.onAny(isOurs, look);
    return () => {
      stop();
      looking.abort();
    };
  }, [id]);
  if (!latest || known.includes(latest.task)) return null;
  return (
    <p class="line no-print" role="status">
      {latest.problem ? `Whether there is a newer analysis could not be read: ${latest.problem}` : "The project has a newer analysis."}
      <button type="button" class="small primary" onClick={() => (setLatest(null), reload())}>
        Read again
      </button>
    </p>
  );
}
