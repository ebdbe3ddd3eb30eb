// Requests to the service: the answer, or the reason for having none.

import { Cell } from "./cell";

const PATIENCE = 15_000;

/** Whether the service asks for a token that this browser has not given. */
export const signedOut = new Cell(false);

/** A request that did not succeed, with a text for the user. `status` is 0 if there was no answer. */
export class Problem extends Error {
  constructor(
    readonly status: number,
    text: string,
    readonly requestId = "",
    readonly fields: readonly FieldProblem[] = [],
  ) {
    super(text);
    this.name = "Problem";
  }
}

interface FieldProblem {
  detail: string;
  pointer?: string;
  parameter?: string;
}

export interface Answer<T> {
  body: T;
  /** The position of the log for which the answer is true; 0 if it names none. */
  sequence: number;
  /** The address of a list's next page. */
  next: string | null;
  /** The version of the resource, for `If-Match`; empty if it has none. */
  etag: string;
  /** Whether the key had taken effect before: the body is the first answer. */
  isReplayed: boolean;
}

export interface Options {
  body?: unknown;
  /** The type of a body that is sent as it is, a text; JSON otherwise. */
  media?: string;
  signal?: AbortSignal;
  headers?: Record<string, string>;
  /** The change takes effect once, however often it is sent. */
  key?: string;
  patience?: number;
  keepalive?: boolean;
}

/** A key for one change. `crypto.randomUUID` is there on secure origins only. */
export function newKey(): string {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** Ask the service. Raises Problem; an aborted request raises the browser's AbortError. */
export async function ask<T>(method: string, path: string, options: Options = {}): Promise<Answer<T>> {
  const controller = new AbortController();
  const abort = () => controller.abort();
  const timer = setTimeout(abort, options.patience ?? PATIENCE);
  options.signal?.addEventListener("abort", abort);
  const init: RequestInit = {
    method,
    cache: "no-store",
    keepalive: options.keepalive ?? false,
    signal: controller.signal,
    headers: {
      Accept: "application/json",
      ...(options.body === undefined ? {} : { "Content-Type": options.media ?? "application/json" }),
      ...(options.key ? { "Idempotency-Key": options.key } : {}),
      ...options.headers,
    },
  };
  if (options.body !== undefined) init.body = options.media ? String(options.body) : JSON.stringify(options.body);
  let answer: Response;
  let text: string;
  try {
    options.signal?.throwIfAborted();
    answer = await fetch(path, init);
    text = await answer.text();
  } catch (error) {
    if (options.signal?.aborted) throw error;
    throw new Problem(0, controller.signal.aborted ? "The service did not answer in time." : "The service cannot be reached.");
  } finally {
    clearTimeout(timer);
    options.signal?.removeEventListener("abort", abort);
  }
  const isJson = (answer.headers.get("Content-Type") ?? "").includes("json");
  const body: unknown = isJson && text ? parsed(text) : text;
  if (!answer.ok) throw problem(answer, body);
  return {
    body: body as T,
    sequence: Number(answer.headers.get("Event-Sequence") ?? 0),
    next: nextOf(path, answer.headers.get("Link") ?? ""),
    etag: answer.headers.get("ETag") ?? "",
    isReplayed: answer.headers.get("Idempotent-Replayed") === "true",
  };
}

/** The body of a GET. */
export async function read<T>(path: string, signal?: AbortSignal): Promise<T> {
  return (await ask<T>("GET", path, signal ? { signal } : {})).body;
}

/**
 * Pages of a list, about `most` elements at most; `page` is given each as it comes, and its answer `false` ends the reading. Gives
 * whether these are all pages.
 */
export async function readPages<T>(
  path: string,
  page: (elements: T[], sequence: number) => unknown,
  { signal, most = Infinity }: { signal?: AbortSignal; most?: number } = {},
): Promise<boolean> {
  let count = 0;
  let next: string | null = path;
  while (next && count < most) {
    const answer: Answer<T[]> = await ask("GET", next, signal ? { signal } : {});
    count += answer.body.length;
    next = answer.next;
    if (page(answer.body, answer.sequence) === false) break;
  }
  return next === null;
}

/** Trade the token for a cookie at an address of the service. Raises Problem. */
export async function signIn(session: string, token: string): Promise<void> {
  await ask("POST", session, { headers: { Authorization: `Bearer ${token}` } });
  signedOut.set(false);
}

/** The status of an answer whose body is not read, 0 without an answer: an EventSource does not give the status of a refusal. */
export async function statusOf(url: string, patience = PATIENCE): Promise<number> {
  const stop = new AbortController();
  const timer = setTimeout(() => stop.abort(), patience);
  try {
    const { status } = await fetch(url, { cache: "no-store", signal: stop.signal });
    if (status === 401) signedOut.set(true);
    return status;
  } catch {
    return 0;
  } finally {
    clearTimeout(timer);
    stop.abort();
  }
}

/** The text of an error for the user. */
export function textOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** The list's own path with the query that the service names: a proxy may have put it under another path. */
function nextOf(path: string, link: string): string | null {
  const query = /<[^>?]*(\?[^>]*)>;\s*rel="next"/.exec(link)?.[1];
  return query ? path.replace(/\?.*/, "") + query : null;
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

function problem(answer: Response, body: unknown): Problem {
  if (answer.status === 401) signedOut.set(true);
  const document = (body ?? {}) as { message?: string; error?: string; request_id?: string; errors?: FieldProblem[] };
  const text = document.message ?? document.error ?? `${answer.status} ${answer.statusText}`;
  return new Problem(answer.status, text, document.request_id ?? "", document.errors ?? []);
}
