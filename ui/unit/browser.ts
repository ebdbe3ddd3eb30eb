// Parts of a browser for modules that use them: a stream of events, a channel between tabs, an answer for each request.

type Listener = (event: never) => void;

/** A stream of events that a test opens and fills. */
export class Events {
  static readonly CLOSED = 2;
  static all: Events[] = [];
  readyState = 0;
  readonly #listeners = new Map<string, Listener[]>();

  constructor(readonly url: string) {
    Events.all.push(this);
  }

  addEventListener(name: string, listener: Listener): void {
    this.#listeners.set(name, [...(this.#listeners.get(name) ?? []), listener]);
  }

  close(): void {
    this.readyState = Events.CLOSED;
  }

  /** Let the service send something. */
  send(name: string, lastEventId = "", data: unknown = null): void {
    for (const listener of this.#listeners.get(name) ?? []) listener({ lastEventId, data: JSON.stringify(data) } as never);
  }
}

/** A channel between tabs that delivers each message at once. */
export class Channel {
  static all: Channel[] = [];
  readonly #listeners: Listener[] = [];

  constructor(readonly name: string) {
    Channel.all.push(this);
  }

  addEventListener(_: string, listener: Listener): void {
    this.#listeners.push(listener);
  }

  postMessage(data: unknown): void {
    for (const other of Channel.all) if (other !== this && other.name === this.name) for (const listener of other.#listeners) listener({ data } as never);
  }
}

interface Asked {
  method: string;
  path: string;
  body: unknown;
  headers: Record<string, string>;
  signal: AbortSignal | undefined;
}

/** The requests so far, in order. */
export const asked: Asked[] = [];

/** Answers a request; a test sets it. */
export const service: { answer: (request: Asked) => Response | Promise<Response> } = {
  answer: () => new Response(null, { status: 404 }),
};

async function fetch(path: string, init: RequestInit): Promise<Response> {
  const text = init.body ? String(init.body) : "";
  const request = { method: init.method ?? "GET", path, body: text && JSON.parse(text), headers: init.headers as Record<string, string>, signal: init.signal ?? undefined };
  asked.push(request);
  return await service.answer(request);
}

/** An answer in JSON. */
export const json = (body: unknown, status = 200, headers: Record<string, string> = {}): Response =>
  new Response(JSON.stringify(body), { status, headers: { "Content-Type": "application/json", ...headers } });

/** Wait until everything that needs no time is done. */
export const settled = (): Promise<void> => new Promise((done) => setImmediate(done));

declare function setImmediate(run: () => void): void;

class Target {
  readonly #listeners = new Map<string, Listener[]>();

  readonly addEventListener = (name: string, listener: Listener): void => {
    this.#listeners.set(name, [...(this.#listeners.get(name) ?? []), listener]);
  };

  readonly dispatchEvent = (event: Event): void => {
    for (const listener of this.#listeners.get(event.type) ?? []) listener(event as never);
  };
}

/** A browser that stores nothing. */
class Refused extends EventTarget {
  readonly error = new Error("nothing is stored");
}

function refused(): Refused {
  const request = new Refused();
  queueMicrotask(() => request.dispatchEvent(new Event("error")));
  return request;
}

const page = new Target();
const parts = {
  window: globalThis,
  document: Object.assign(new Target(), { hidden: true }),
  location: new URL("https://pages.test/"),
  addEventListener: page.addEventListener,
  dispatchEvent: page.dispatchEvent,
  EventSource: Events,
  BroadcastChannel: Channel,
  IDBRequest: Refused,
  indexedDB: { open: refused },
  fetch,
  navigator: {},
};
for (const [name, value] of Object.entries(parts)) Object.defineProperty(globalThis, name, { value, configurable: true, writable: true });
