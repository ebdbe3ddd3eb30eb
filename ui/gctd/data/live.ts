// The tracker's events in this browser.

import { useEffect, useState } from "preact/hooks";
import { type Live, Stream } from "../../kit/data/live";

export const stream = new Stream({
  url: "/api/sse",
  names: ["task", "stage", "log", "repo", "verdict", "delivery", "updates", "worker"],
  probe: "/livez",
  channel: "gctd-events",
});

/** How many events about something came since the component is there; a count also where events may have been missed. */
export function useEvents(isOurs: (event: Live) => boolean, about: string): number {
  const [count, setCount] = useState(0);
  useEffect(() => stream.onAny(isOurs, () => setCount((before) => before + 1)), [about]);
  return count;
}
