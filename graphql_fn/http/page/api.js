// Requests to the gateway: queries, subscriptions, sign-in.

const PAUSE = 2000;

export class Refused extends Error {
  constructor(status, text) {
    super(text);
    this.status = status;
  }
}

const address = (name) => `/function/${encodeURIComponent(name)}`;

async function send(path, options) {
  let answer;
  try {
    answer = await fetch(path, { cache: "no-store", ...options });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Error("the gateway cannot be reached");
  }
  return answer;
}

async function refusal(answer) {
  const body = await answer.json().catch(() => null);
  return new Refused(answer.status, body?.message ?? body?.errors?.[0]?.message ?? `${answer.status} ${answer.statusText}`);
}

const post = (request, accept, signal, more = {}) => ({
  method: "POST",
  headers: { "Content-Type": "application/json", Accept: accept, ...more },
  body: JSON.stringify(request),
  signal,
});

// The result of a query, also of one that was refused: there are errors in it then.
export async function ask(name, request, signal) {
  const answer = await send(address(name), post(request, "application/graphql-response+json, application/json", signal));
  const media = answer.headers.get("Content-Type") ?? "";
  if (!/^application\/(graphql-response\+)?json/.test(media)) throw await refusal(answer);
  return { result: await answer.json(), status: answer.status };
}

export async function functions() {
  const answer = await send("/api/functions", {});
  if (!answer.ok) throw await refusal(answer);
  return (await answer.json()).functions;
}

export async function signIn(token) {
  const answer = await send("/api/session", { method: "POST", headers: { Authorization: `Bearer ${token}` } });
  if (!answer.ok) throw await refusal(answer);
}

// The events of a stream (WHATWG HTML, section 9.2): the part of the format that the gateway uses.
async function* events(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  let event = { name: "", data: [], id: null };
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    const lines = (rest + value).split(/\r?\n/);
    rest = lines.pop();
    for (const line of lines) {
      if (line === "") {
        yield { ...event, data: event.data.join("\n") };
        event = { name: "", data: [], id: null };
      }
      const [, field, text] = /^([^:]*):? ?(.*)$/.exec(line);
      if (field === "event") event.name = text;
      else if (field === "data") event.data.push(text);
      else if (field === "id") event.id = text;
    }
  }
}

// A subscription until it is complete. After a cut of the connection it continues behind the last event.
export async function follow(name, request, signal, { open, next, cut }) {
  let last = null;
  for (;;) {
    try {
      const answer = await send(address(name), post(request, "text/event-stream", signal, last === null ? {} : { "Last-Event-ID": last }));
      if (!answer.ok) throw await refusal(answer);
      open();
      for await (const event of events(answer.body)) {
        if (event.id !== null) last = event.id;
        if (event.name === "next") next(JSON.parse(event.data));
        if (event.name === "complete") return;
      }
    } catch (error) {
      if (signal.aborted || (error instanceof Refused && error.status < 500)) throw error;
    }
    cut();
    await new Promise((done) => setTimeout(done, PAUSE));
    if (signal.aborted) return;
  }
}
