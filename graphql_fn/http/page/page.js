// The page of a function: write a query, run it, read its result, look up what can be asked.

import { Refused, ask, follow, functions, signIn } from "./api.js";
import { draw, types } from "./documentation.js";

const $ = (id) => document.getElementById(id);
const name = decodeURIComponent(/\/function\/([^/]+)/.exec(location.pathname)?.[1] ?? "graphql");
const kept = `graphql-fn:${name}`;
const MOST = 100;
const EXAMPLES = {
  graphql: "{\n  hello\n}\n",
  pantry: "{\n  products(first: 10, lowStock: true) {\n    nodes {\n      name\n      currentStock\n      unit\n      movements(first: 3) {\n        nodes { type quantity createdAt }\n      }\n    }\n    pageInfo { hasNextPage endCursor }\n  }\n}\n",
  tracker: "{\n  analyses(first: 10) {\n    nodes {\n      repoUrl\n      project\n      average\n      exceeded\n      functions(first: 5) {\n        nodes { function crap complexity coverage file line }\n      }\n    }\n  }\n}\n",
};

let running = null;

function say(text) {
  $("said").textContent = text;
  $("problem").textContent = "";
}

function complain(error) {
  $("said").textContent = "";
  $("problem").textContent = error.message;
  if (error instanceof Refused && error.status === 401) {
    $("signin").hidden = false;
    $("token").focus();
  }
}

function variables() {
  const text = $("variables").value.trim();
  if (!text) return undefined;
  let found;
  try {
    found = JSON.parse(text);
  } catch {
    throw new Error("the variables are not JSON");
  }
  if (found === null || typeof found !== "object" || Array.isArray(found)) throw new Error("the variables are not a JSON object");
  return found;
}

const show = (value) => JSON.stringify(value, null, 2);
// Whether the text, without its comments, has a subscription.
const isSubscription = (text) => /(^|[}\s])subscription\b[^"]*\{/.test(text.replace(/#.*$/gm, ""));

async function run() {
  running?.abort();
  const own = (running = new AbortController());
  $("stop").hidden = false;
  const began = performance.now();
  try {
    const request = { query: $("query").value, variables: variables() };
    say("running");
    if (isSubscription(request.query)) await listen(request, own.signal);
    else {
      const { result, status } = await ask(name, request, own.signal);
      $("result").textContent = show(result);
      say(`${status}, ${Math.round(performance.now() - began)} ms${result.errors ? `, errors: ${result.errors.length}` : ""}`);
    }
  } catch (error) {
    if (!own.signal.aborted) complain(error);
  } finally {
    if (running === own) {
      running = null;
      $("stop").hidden = true;
    }
  }
}

async function listen(request, signal) {
  const found = [];
  let count = 0;
  $("result").textContent = "";
  await follow(name, request, signal, {
    open: () => say("listening"),
    next(result) {
      count += 1;
      found.unshift(show(result));
      found.length = Math.min(found.length, MOST);
      $("result").textContent = found.join("\n");
      say(`listening, events: ${count}`);
    },
    cut: () => say(`connection lost, trying again; events: ${count}`),
  });
  say(`ended, events: ${count}`);
}

function stop() {
  running?.abort();
  running = null;
  $("stop").hidden = true;
  say("stopped");
  $("query").focus();
}

function keep() {
  try {
    sessionStorage.setItem(kept, JSON.stringify({ query: $("query").value, variables: $("variables").value }));
  } catch {
    // The browser allows no storage, so the query is not kept.
  }
}

function restore() {
  let found = null;
  try {
    found = JSON.parse(sessionStorage.getItem(kept));
  } catch {
    // As above.
  }
  const given = new URLSearchParams(location.search);
  $("query").value = given.get("query") ?? found?.query ?? EXAMPLES[name] ?? "{\n  __typename\n}\n";
  $("variables").value = given.get("variables") ?? found?.variables ?? "";
}

async function start() {
  document.title = `${name}: GraphQL`;
  try {
    const links = (await functions()).map((one) => {
      const link = document.createElement("a");
      link.href = `/function/${encodeURIComponent(one)}`;
      link.textContent = one;
      if (one === name) link.setAttribute("aria-current", "page");
      return link;
    });
    $("functions").replaceChildren(...links);
    const found = await types(name);
    const redraw = () => draw(found, $("search").value, $("types"), $("count"));
    $("search").oninput = redraw;
    redraw();
    $("signin").hidden = true;
  } catch (error) {
    complain(error);
  }
}

$("ask").addEventListener("submit", (event) => {
  event.preventDefault();
  run();
});
for (const field of ["query", "variables"]) {
  $(field).addEventListener("input", keep);
  $(field).addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      run();
    }
  });
}
$("stop").addEventListener("click", stop);
document.addEventListener("keydown", (event) => {
  if (event.key === "Escape" && running) stop();
});
$("signin").addEventListener("submit", (event) => {
  event.preventDefault();
  signIn($("token").value).then(() => {
    $("token").value = "";
    say("");
    start();
  }, complain);
});

restore();
start();
