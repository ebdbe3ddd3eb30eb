// The service worker: it keeps the files of one build, and answers with them if the network does not. It never keeps answers of the API.
//
// The build writes the list of files and its digest into this file, so that each build is another worker with another cache.

declare const __FILES__: readonly string[];
declare const __VERSION__: string;

/** The part of a service worker's scope that is used here: the types of the page have none. */
interface Scope {
  readonly registration: { readonly scope: string };
  readonly clients: { claim(): Promise<void> };
  skipWaiting(): Promise<void>;
  addEventListener(type: "install" | "activate", listener: (event: Lasting) => void): void;
  addEventListener(type: "fetch", listener: (event: Asked) => void): void;
  addEventListener(type: "message", listener: (event: MessageEvent) => void): void;
}

interface Lasting {
  waitUntil(work: Promise<unknown>): void;
}

interface Asked extends Lasting {
  readonly request: Request;
  respondWith(answer: Promise<Response>): void;
}

const scope = self as unknown as Scope;
const PREFIX = "pantry-page-";
const NAME = `${PREFIX}${__VERSION__}`;
/** How long the network has to answer with the page, in milliseconds, before the kept one is shown. */
const PATIENCE = 3_000;
const FILES = new Set(__FILES__.map((name) => new URL(name, scope.registration.scope).href));
const PAGE = scope.registration.scope;
/** Files that are large and needed by some only are kept once they were loaded. */
const STATIC = new URL("static/", PAGE).href;

scope.addEventListener("install", (event) => event.waitUntil(fill()));
scope.addEventListener("activate", (event) => event.waitUntil(clean()));
scope.addEventListener("message", ({ data }) => void (data === "take over" && scope.skipWaiting()));
scope.addEventListener("fetch", (event) => {
  const { request } = event;
  if (request.method !== "GET") return;
  const address = request.url.replace(/[?#].*/, "");
  if (request.mode === "navigate" && address === PAGE) event.respondWith(page(request));
  else if (FILES.has(address) || address.startsWith(STATIC)) event.respondWith(file(request));
});

async function fill(): Promise<void> {
  const cache = await caches.open(NAME);
  await cache.addAll([PAGE, ...FILES].map((address) => new Request(address, { cache: "reload" })));
}

async function clean(): Promise<void> {
  for (const name of await caches.keys()) if (name.startsWith(PREFIX) && name !== NAME) await caches.delete(name);
  await scope.clients.claim();
}

/** The page of the network, or the kept one. */
async function page(request: Request): Promise<Response> {
  try {
    const answer = await fetch(request.url, { signal: AbortSignal.timeout(PATIENCE) });
    if (answer.ok) return answer;
  } catch {
    // no network, or no service
  }
  return (await (await caches.open(NAME)).match(PAGE)) ?? fetch(request);
}

/** A file whose name has the digest of its content, or that belongs to this version: the kept one is right. */
async function file(request: Request): Promise<Response> {
  const cache = await caches.open(NAME);
  const kept = await cache.match(request, { ignoreSearch: true });
  if (kept) return kept;
  const answer = await fetch(request);
  if (answer.ok) await cache.put(request, answer.clone());
  return answer;
}

export {};
