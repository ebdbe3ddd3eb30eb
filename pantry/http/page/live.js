// The event stream: it resumes by itself, is reopened if the browser gives up, and reports when it is stale.

import { alive } from "./api.js";

const REOPEN = 3000;
const CHECK = 20000;

// `on` has `open`, `stale(since)`, `reset`, and a function for each event, which gets its data and its position in the log.
export function follow(names, on) {
  let source = null;
  let since = null;
  let waiting = null;

  function stale() {
    since ??= new Date();
    on.stale(since);
  }

  function open() {
    clearTimeout(waiting);
    source?.close();
    source = new EventSource(`api/v1/events?events=${names.join(",")}`);
    source.addEventListener("open", () => {
      since = null;
      on.open();
    });
    source.addEventListener("error", () => {
      stale();
      if (source.readyState === EventSource.CLOSED) waiting = setTimeout(open, REOPEN);
    });
    source.addEventListener("reset", on.reset);
    for (const name of names) {
      source.addEventListener(name, (event) => on[name](JSON.parse(event.data), Number.parseInt(event.lastEventId, 10)));
    }
  }

  // A connection that died without a word is found out only by asking.
  async function check() {
    if (document.hidden) return;
    try {
      await alive();
      if (since) open();
    } catch {
      stale();
    }
  }

  open();
  setInterval(check, CHECK);
  document.addEventListener("visibilitychange", check);
  addEventListener("online", check);
  addEventListener("offline", stale);
}
