// Requests to the pantry: reads, and changes that take effect once.

const PATIENCE = 6000;
const PAUSE = 400;

export class Refused extends Error {
  constructor(status, text) {
    super(text);
    this.status = status;
  }
}

// The outcome of the request is not known. It may be repeated with the same key.
export class Unknown extends Error {}

// `crypto.randomUUID` is there on secure origins only, and a kitchen's phone may come over http.
function newKey() {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join("");
}

async function ask(path, options = {}) {
  let answer;
  try {
    answer = await fetch(path, { cache: "no-store", signal: AbortSignal.timeout(PATIENCE), ...options });
  } catch {
    throw new Unknown("the pantry cannot be reached");
  }
  const media = answer.headers.get("Content-Type") ?? "";
  const body = media.includes("json") ? await answer.json().catch(() => null) : null;
  if (answer.ok) return { body, headers: answer.headers };
  const text = body?.error ?? `${answer.status} ${answer.statusText}`;
  throw answer.status === 503 ? new Unknown(text) : new Refused(answer.status, text);
}

export const read = (path) => ask(`api/v1${path}`);

// A change, as a function: each of its calls is the same change, which takes effect once on any network.
export function change(path, body) {
  const options = {
    method: "POST",
    headers: { "Content-Type": "application/json", "Idempotency-Key": newKey() },
    body: JSON.stringify(body),
  };
  return async () => {
    try {
      return await ask(`api/v1${path}`, options);
    } catch (error) {
      if (!(error instanceof Unknown)) throw error;
    }
    await new Promise((done) => setTimeout(done, PAUSE));
    return ask(`api/v1${path}`, options);
  };
}

export const signIn = (token) => ask("api/v1/session", { method: "POST", headers: { Authorization: `Bearer ${token}` } });

export const alive = () => ask("ping");

// All elements of a list, and the position of the log for which they are true.
export async function readAll(path) {
  const found = [];
  let position = Infinity;
  for (let next = path; next; ) {
    const { body, headers } = await read(next);
    found.push(...body);
    position = Math.min(position, Number(headers.get("Event-Sequence") ?? 0));
    const link = /<([^>]*)>;\s*rel="next"/.exec(headers.get("Link") ?? "");
    next = link ? new URL(link[1], location.href).href.split("/api/v1")[1] : null;
  }
  return { found, position };
}
