// The events of the service in several tabs: the lists of each tab are read, whatever comes first.

import assert from "node:assert/strict";
import { beforeEach, mock, test } from "node:test";
import { Channel, Events } from "./browser.ts";
import { Stream } from "../kit/data/live";

interface Lock {
  name: string;
  run: () => Promise<never>;
}

const waiting: Lock[] = [];
/** The lock is held by the first tab that asks; others get it when a test ends that tab. */
Object.assign(navigator, {
  locks: {
    request: (name: string, run: Lock["run"]) => {
      waiting.push({ name, run });
      if (waiting.length === 1) void run();
    },
  },
});

beforeEach(() => {
  waiting.length = 0;
  Channel.all = [];
  Events.all = [];
  mock.timers.reset();
  mock.timers.enable({ apis: ["setTimeout", "setInterval", "Date"] });
});

class Tab {
  readonly stream = new Stream({ url: "/events", names: ["stock"], probe: "/livez", channel: "events" });
  /** How often its lists were read. */
  reads = 0;
  readonly seen: string[] = [];

  start(): this {
    this.stream.listen((events) => this.seen.push(...events.map(({ id }) => id)));
    this.stream.onResync(() => {
      this.reads += 1;
    });
    this.stream.start();
    return this;
  }
}

function leading(): Tab {
  const tab = new Tab().start();
  Events.all.at(-1)?.send("open");
  return tab;
}

const send = (id: string): void => Events.all.at(-1)?.send("stock", id);

test("a tab reads its lists as soon as its connection is open", () => {
  assert.equal(leading().reads, 1);
});

test("another tab has no connection, and reads its lists", () => {
  leading();
  assert.equal(new Tab().start().reads, 1);
  assert.equal(Events.all.length, 1);
});

test("a tab that is loading while another one takes the lead reads its lists", () => {
  const loading = new Tab();
  leading();
  assert.equal(loading.start().reads, 1);
});

test("a tab that hears of an event before it knows the state reads its lists", () => {
  const first = leading();
  const loading = new Tab();
  send("7");
  loading.start();
  assert.equal(loading.reads, 1);
  assert.equal(first.stream.last.value, "7");
});

test("a tab that was opened without a connection reads its lists when there is one", () => {
  leading();
  send("7");
  Events.all.at(-1)?.send("error");
  const late = new Tab().start();
  assert.deepEqual([late.stream.state.value.kind, late.reads], ["stale", 0]);
  Events.all.at(-1)?.send("open");
  assert.deepEqual([late.stream.state.value.kind, late.reads], ["live", 1]);
});

test("each event reaches all tabs once and in order", () => {
  const tabs = [leading(), new Tab().start()];
  for (const id of ["7", "7.1", "7", "10", "9"]) send(id);
  mock.timers.tick(50);
  for (const { seen } of tabs) assert.deepEqual(seen, ["7", "7.1", "10"]);
});

test("a tab that missed an event reads its lists again", () => {
  leading();
  const other = new Tab().start();
  send("7");
  Channel.all[0]?.postMessage({ kind: "event", before: "8", event: { id: "9", name: "stock", data: null } });
  assert.equal(other.reads, 2);
});

test("after the tab with the connection is closed another one resumes after the last event", () => {
  leading();
  const other = new Tab().start();
  send("7");
  Channel.all.shift();
  void waiting[1]?.run();
  assert.equal(Events.all.at(-1)?.url, "/events?last_event_id=7");
  Events.all.at(-1)?.send("open");
  assert.equal(other.reads, 1);
});

test("a reset of the service lets all tabs read their lists", () => {
  const tabs = [leading(), new Tab().start()];
  send("7");
  Events.all.at(-1)?.send("reset");
  for (const { reads, stream } of tabs) assert.deepEqual([reads, stream.last.value], [2, ""]);
});
