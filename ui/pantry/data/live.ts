// The pantry's events in this browser. Addresses are relative: a proxy may have the page below a path.

import { Stream } from "../../kit/data/live";

export const API = "api/v1";

export const stream = new Stream({
  url: `${API}/events?events=stock,product,code`,
  names: ["stock", "product", "code"],
  probe: "ping",
  channel: `pantry-events ${location.pathname}`,
});
