// Requests to a function: queries, and subscriptions that resume after a lost connection.

import { Problem, signedOut } from "../kit/data/http";

const PAUSE = 2_000;
/** Milliseconds without a byte after which a stream is dead: the service sends a comment every 15 s (httpkit/sse/single.py). */
const SILENCE = 40_000;

export interface Request {
  query: string;
  variables?: Record<string, unknown>;
  operationName?: string;
}

export interface Placed {
  message: string;
  locations?: readonly { line: number; column: number }[];
}

export interface Result {
  data?: unknown;
  errors?: readonly Placed[];
}

export type Headers = Readonly<Record<string, string>>;

export const addressOf = (name: string): string => `/function/${encodeURIComponent(name)}`;

/** Whether a definition of the text is a subscription. Names of operations and fields, strings and comments do not count. */
export function isSubscription(text: string): boolean {
  let definitions = text.replace(/"""(?:\\"""|[^])*?"""|"(?:\\.|[^"\\\n])*"|#.*/g, "");
  for (let before = ""; before !== definitions; ) {
    before = definitions;
    definitions = before.replace(/\{[^{}]*\}/g, ";");
  }
  return /(?:^|;)[\s,]*subscription\b/.test(definitions);
}

async function send(name: string, request: Request, headers: Headers, signal: AbortSignal | undefined): Promise<Response> {
  const init: RequestInit = { method: "POST", cache: "no-store", headers: { "Content-Type": "application/json", ...headers }, body: JSON.stringify(request) };
  if (signal) init.signal = signal;
  try {
    return await fetch(addressOf(name), init);
  } catch (error) {
    if (signal?.aborted) throw error;
    throw new Problem(0, "The service cannot be reached.");
  }
}

async function refusal(answer: Response): Promise<Problem> {
  if (answer.status === 401) signedOut.set(true);
  const body = (await answer.json().catch(() => null)) as { message?: string; errors?: readonly Placed[] } | null;
  return new Problem(answer.status, body?.message ?? body?.errors?.[0]?.message ?? `${answer.status} ${answer.statusText}`);
}

/** The result of a query, also one with errors only. Raises Problem. */
export async function ask(name: string, request: Request, headers: Headers = {}, signal?: AbortSignal): Promise<{ result: Result; status: number; bytes: number }> {
  const answer = await send(name, request, { Accept: "application/graphql-response+json, application/json", ...headers }, signal);
  const media = answer.headers.get("Content-Type") ?? "";
  if (!/^application\/(graphql-response\+)?json/.test(media)) throw await refusal(answer);
  const text = await answer.text();
  return { result: JSON.parse(text) as Result, status: answer.status, bytes: new TextEncoder().encode(text).length };
}

interface Event {
  name: string;
  data: string;
  id: string | null;
}

/** The events of a stream (WHATWG HTML, section 9.2), as far as the service uses the format. `heard` is called for all bytes. */
async function* events(body: ReadableStream<Uint8Array>, heard: () => void): AsyncGenerator<Event> {
  const decoder = new TextDecoder();
  const reader = body.getReader();
  let rest = "";
  let event: { name: string; data: string[]; id: string | null } = { name: "", data: [], id: null };
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    heard();
    const lines = (rest + decoder.decode(value, { stream: true })).split(/\r?\n/);
    rest = lines.pop() ?? "";
    for (const line of lines) {
      if (line === "") {
        yield { ...event, data: event.data.join("\n") };
        event = { name: "", data: [], id: null };
      }
      const [, field, text = ""] = /^([^:]*):? ?(.*)$/.exec(line) ?? [];
      if (field === "event") event.name = text;
      else if (field === "data") event.data.push(text);
      else if (field === "id") event.id = text;
    }
  }
}

interface Heard {
  open: () => void;
  next: (result: Result) => void;
  cut: () => void;
}

/** A signal that is given with another one, or after too long a silence. `end` has to be called. */
function silence(signal: AbortSignal): { signal: AbortSignal; heard: () => void; end: () => void } {
  const controller = new AbortController();
  const abort = () => controller.abort();
  signal.addEventListener("abort", abort);
  let timer = setTimeout(abort, SILENCE);
  const heard = () => {
    clearTimeout(timer);
    timer = setTimeout(abort, SILENCE);
  };
  const end = () => {
    clearTimeout(timer);
    signal.removeEventListener("abort", abort);
  };
  return { signal: controller.signal, heard, end };
}

/**
 * Follow a subscription until it is complete. After a connection that was lost, or is silent, it resumes after the last event.
 * Raises Problem.
 */
export async function follow(name: string, request: Request, headers: Headers, signal: AbortSignal, { open, next, cut }: Heard): Promise<void> {
  let last: string | null = null;
  for (;;) {
    const connection = silence(signal);
    try {
      const resumed: Headers = last === null ? {} : { "Last-Event-ID": last };
      const answer = await send(name, request, { Accept: "text/event-stream", ...headers, ...resumed }, connection.signal);
      if (!answer.ok || !answer.body) throw await refusal(answer);
      open();
      for await (const event of events(answer.body, connection.heard)) {
        if (event.id !== null) last = event.id;
        if (event.name === "next") next(JSON.parse(event.data) as Result);
        if (event.name === "complete") return;
      }
    } catch (error) {
      if (signal.aborted || (error instanceof Problem && error.status > 0 && error.status < 500)) throw error;
    } finally {
      connection.end();
    }
    cut();
    await new Promise((done) => setTimeout(done, PAUSE));
    if (signal.aborted) return;
  }
}
