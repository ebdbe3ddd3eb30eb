// The events of the service as they happen. One tab of the browser has the connection and sends them to the others. It is the one
// that holds a lock, so when it is closed another tab resumes, after the last event that it saw.
//
// Each event reaches a tab once and in order. If events are missed after all (the log was replaced, a tab slept), the tab is
// notified to reload its lists.

import { Cell } from "./cell";
import { ask, Problem, signedOut, statusOf } from "./http";
import { compare } from "./positions";

export interface Live {
  id: string;
  name: string;
  data: unknown;
}

export type State = { kind: "connecting" } | { kind: "live" } | { kind: "stale"; since: number };

interface Settings {
  url: string;
  names: readonly string[];
  /** An address that answers while the service lives. */
  probe: string;
  /** One for each service: tabs of the same one share a connection. */
  channel: string;
}

type Message =
  | { kind: "event"; before: string; event: Live }
  | { kind: "state"; state: State }
  | { kind: "reset" }
  | { kind: "hello" };

const REOPEN = 2_000;
const PROBE = 10_000;
const PATIENCE = 5_000;
/** The server sends a heartbeat every 15 s: a stream without two of them hangs. */
const SILENCE = 40_000;
const SOON = 50;

export class Stream {
  readonly state = new Cell<State>({ kind: "connecting" });
  /** The position of the last event that was given out; empty before the first. */
  readonly last = new Cell("");
  readonly #listeners = new Set<(events: readonly Live[]) => void>();
  readonly #resyncs = new Set<() => void>();
  readonly #channel: BroadcastChannel;
  #source: EventSource | null = null;
  #leads = false;
  /** Whether the lists were read at least once. */
  #isRead = false;
  #reopening = 0;
  #heard = 0;
  #waiting: Live[] = [];
  #flushing = false;

  constructor(readonly settings: Settings) {
    this.#channel = new BroadcastChannel(settings.channel);
  }

  /** Follow the events, while the page is open. */
  start(): void {
    this.#channel.addEventListener("message", ({ data }: MessageEvent<Message>) => this.#hear(data));
    if (navigator.locks) {
      void navigator.locks.request(this.settings.channel, () => {
        this.#lead();
        return new Promise<never>(() => {});
      });
      this.#say({ kind: "hello" });
    } else {
      this.#lead(); // no locks on an origin that is not secure: each tab has its own connection
    }
    setInterval(() => void this.#probe(), PROBE);
    document.addEventListener("visibilitychange", () => void this.#probe());
    addEventListener("online", () => void this.#probe());
    addEventListener("offline", () => this.#leads && this.#stale());
    addEventListener("pageshow", (event) => {
      if (event.persisted) this.#resync();
    });
  }

  /** Be given events, in order, some at a time: at most one call per frame. */
  listen(listener: (events: readonly Live[]) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Called when lists have to be read: at the beginning, and when events may have been missed. */
  onResync(listener: () => void): () => void {
    this.#resyncs.add(listener);
    return () => this.#resyncs.delete(listener);
  }

  /** Call `action` if one of some events is wanted, and if events may have been missed. */
  onAny(isWanted: (event: Live) => boolean, action: () => void): () => void {
    const stops = [this.onResync(action), this.listen((events) => events.some(isWanted) && action())];
    return () => {
      for (const stop of stops) stop();
    };
  }

  /** A list was read that is true for this position: events up to it need not be seen. */
  startAt(sequence: number): void {
    if (!this.last.value && sequence) this.last.set(String(sequence));
  }

  /** Connect at once, rather than when it is time to. */
  retry(): void {
    if (this.#leads) this.#open();
  }

  #lead(): void {
    this.#leads = true;
    this.#open();
  }

  #open(): void {
    clearTimeout(this.#reopening);
    this.#source?.close();
    const { url, names } = this.settings;
    const resumes = this.last.value;
    const source = new EventSource(resumes ? `${url}${url.includes("?") ? "&" : "?"}last_event_id=${resumes}` : url);
    this.#source = source;
    const heard = () => {
      this.#heard = Date.now();
    };
    source.addEventListener("heartbeat", heard);
    source.addEventListener("open", () => {
      heard();
      this.#turn({ kind: "live" });
      if (!this.last.value) this.#reset();
    });
    source.addEventListener("error", () => {
      this.#stale();
      if (source.readyState === EventSource.CLOSED) void this.#refused();
    });
    source.addEventListener("reset", () => this.#reset());
    for (const name of names) {
      source.addEventListener(name, (message: MessageEvent<string>) => {
        heard();
        const event = { id: message.lastEventId, name, data: JSON.parse(message.data) as unknown };
        this.#say({ kind: "event", before: this.last.value, event });
        this.#take(event);
      });
    }
  }

  #take(event: Live): void {
    if (this.last.value && compare(event.id, this.last.value) <= 0) return; // seen before a connection was lost
    this.last.set(event.id);
    this.#waiting.push(event);
    if (this.#flushing) return;
    this.#flushing = true;
    const flush = () => {
      this.#flushing = false;
      const events = this.#waiting;
      this.#waiting = [];
      for (const listener of [...this.#listeners]) listener(events);
    };
    // A hidden page has no frames; a visible one that is behind need not draw every one.
    setTimeout(() => (document.hidden ? flush() : requestAnimationFrame(flush)), SOON);
  }

  #hear(message: Message): void {
    if (message.kind === "hello") {
      if (this.#leads) this.#say({ kind: "state", state: this.state.value });
    } else if (this.#leads) {
      return;
    } else if (message.kind === "state") {
      this.state.set(message.state);
      if (message.state.kind === "live" && !this.#isRead) this.#resync();
    } else if (!this.#isRead) {
      return; // the lists are read as soon as the connection is known to be live
    } else if (message.kind === "reset") {
      this.last.set("");
      this.#resync();
    } else {
      const missed = this.last.value && message.before && compare(message.before, this.last.value) > 0;
      this.#take(message.event);
      if (missed) this.#resync();
    }
  }

  #say(message: Message): void {
    this.#channel.postMessage(message);
  }

  /** Of the leader: earlier events are not known; all tabs reload their lists. */
  #reset(): void {
    this.last.set("");
    this.#say({ kind: "reset" });
    this.#resync();
  }

  #resync(): void {
    this.#isRead = true;
    for (const listener of [...this.#resyncs]) listener();
  }

  #turn(state: State): void {
    this.state.set(state);
    this.#say({ kind: "state", state });
  }

  #stale(): void {
    if (this.state.value.kind !== "stale") this.#turn({ kind: "stale", since: Date.now() });
  }

  /** An EventSource does not give the reason of a refusal. A plain request does, and without a token another try is useless. */
  async #refused(): Promise<void> {
    await statusOf(this.settings.url, PATIENCE);
    if (!signedOut.value) this.#reopening = window.setTimeout(() => this.#open(), REOPEN);
  }

  /** Only a probe detects a connection that died silently. */
  async #probe(): Promise<void> {
    if (!this.#leads) return;
    try {
      await ask("GET", this.settings.probe, { patience: PATIENCE });
      if (this.state.value.kind === "live" && Date.now() - this.#heard > SILENCE) {
        this.#stale();
        this.#open();
        return;
      }
      if (this.state.value.kind === "stale" && this.#source?.readyState !== EventSource.CONNECTING) this.#open();
    } catch (error) {
      if (error instanceof Problem && error.status === 0) this.#stale();
    }
  }
}
