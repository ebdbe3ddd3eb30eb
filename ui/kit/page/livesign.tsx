// Whether what is shown is what is.

import { useEffect, useState } from "preact/hooks";
import { useCell } from "../data/cell";
import type { Stream } from "../data/live";

export function LiveSign({ stream }: { stream: Stream }) {
  const state = useCell(stream.state);
  const text =
    state.kind === "stale" ? `stale since ${new Date(state.since).toISOString().slice(11, 19)} UTC` : state.kind === "live" ? "live" : "connecting";
  const [spoken, setSpoken] = useState("");
  // A connection that is lost and found again within a moment is not worth a word.
  useEffect(() => {
    const timer = setTimeout(() => setSpoken(state.kind === "stale" ? "The page is stale: the service cannot be reached." : "The page is live."), 1_000);
    return () => clearTimeout(timer);
  }, [state.kind]);
  return (
    <span class={`live ${state.kind}`} data-live={state.kind}>
      <span aria-hidden="true" class="live-dot" />
      <span>{text}</span>
      {state.kind === "stale" && (
        <button type="button" class="small" onClick={() => stream.retry()}>
          Reconnect
        </button>
      )}
      <span class="hidden-text" role="status">
        {spoken}
      </span>
    </span>
  );
}
