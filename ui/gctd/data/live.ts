// The tracker's events in this browser.

import { Stream } from "../../kit/data/live";

export const stream = new Stream({
  url: "/api/sse",
  names: ["task", "stage", "log", "repo", "verdict", "delivery", "updates", "worker"],
  probe: "/livez",
  channel: "gctd-events",
});
