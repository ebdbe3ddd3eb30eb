// The page of a function: queries in tabs, their results, the documentation, the queries that were run.

import type { EditorView } from "@codemirror/view";
import { graphql, updateSchema } from "cm6-graphql";
import { json, jsonParseLinter } from "@codemirror/lang-json";
import { linter } from "@codemirror/lint";
import type { GraphQLSchema } from "graphql";
import { useCallback, useEffect, useMemo, useRef, useState } from "preact/hooks";
import { useCell } from "../kit/data/cell";
import { Problem, read, signedOut, textOf } from "../kit/data/http";
import { useLoad } from "../kit/data/load";
import { ThemeButton } from "../kit/page/frame";
import { SignIn } from "../kit/page/signin";
import { SignOut } from "../kit/page/signout";
import { useTitle } from "../kit/page/title";
import { Dialogs, say } from "../kit/parts/dialogs";
import { Copy, ErrorPanel } from "../kit/parts/states";
import { Documentation, type Topic } from "./documentation";
import { Editor } from "./editor";
import { formatted } from "./format";
import { Past } from "./past";
import { addressOf, ask, follow, type Headers, type Placed, type Request, isSubscription } from "./requests";
import { schemaOf } from "./schema";
import { exampleOf, forget, historyOf, keepTabs, remembered, restored, type Tab, titleOf } from "./tabs";

const SESSION = "/api/session";
const MOST = 100;
const NONE: readonly Placed[] = [];

const JSON_TEXT = [json(), linter((view) => (view.state.doc.toString().trim() ? jsonParseLinter()(view) : []))];

/** The object of a text. Raises Error for any other text. */
function objectOf(text: string, what: string): Record<string, unknown> {
  if (!text.trim()) return {};
  let found: unknown;
  try {
    found = JSON.parse(text);
  } catch {
    throw new Error(`The ${what} are not JSON.`);
  }
  if (found === null || typeof found !== "object" || Array.isArray(found)) throw new Error(`The ${what} are not a JSON object.`);
  return found as Record<string, unknown>;
}

function headersOf(text: string): Headers {
  const found = objectOf(text, "headers");
  for (const [name, value] of Object.entries(found)) if (typeof value !== "string") throw new Error(`The header ${name} is not a text.`);
  return found as Headers;
}

const shown = (value: unknown): string => JSON.stringify(value, null, 2);

interface Outcome {
  /** The query that was run: its errors have their places in this text. */
  query: string;
  text: string;
  note: string;
  problem: string;
  errors: readonly Placed[];
}

const NOTHING: Outcome = { query: "", text: "", note: "", problem: "", errors: NONE };

export function Page({ name }: { name: string }) {
  const isSignedOut = useCell(signedOut);
  useTitle(name);
  return (
    <div class="shell">
      <header class="top">
        <a class="brand" href="/">
          GraphQL
        </a>
        <Functions name={name} />
        <div class="tools">
          <SignOut session={SESSION} />
          <ThemeButton />
        </div>
      </header>
      <main id="main">{isSignedOut ? <SignIn service="graphql" session={SESSION} onDone={() => location.reload()} /> : <Workspace name={name} />}</main>
      <Dialogs />
    </div>
  );
}

function Functions({ name }: { name: string }) {
  const { value } = useLoad((signal) => read<{ functions: string[] }>("/api/functions", signal), []);
  return (
    <nav aria-label="Functions">
      {(value?.functions ?? [name]).map((each) => (
        <a key={each} href={addressOf(each)} aria-current={each === name ? "page" : undefined}>
          {each}
        </a>
      ))}
    </nav>
  );
}

function Workspace({ name }: { name: string }) {
  const [{ tabs, current }, setKept] = useState(() => restored(name));
  const tab = tabs.find((each) => each.id === current) ?? (tabs[0] as Tab);
  const [outcome, setOutcome] = useState<Outcome>(NOTHING);
  const [running, setRunning] = useState<AbortController | null>(null);
  const [revision, revise] = useState(0);
  const [part, setPart] = useState<"variables" | "headers">("variables");
  const [side, setSide] = useState<"documentation" | "history">("documentation");
  const [history, setHistory] = useState(() => historyOf(name));
  const [topics, setTopics] = useState<readonly Topic[]>([]);
  const [search, setSearch] = useState("");
  const schema = useLoad((signal) => schemaOf(name, signal), [name]);
  useEffect(() => keepTabs(name, { tabs, current }), [tabs, current]);
  useEffect(() => () => running?.abort(), [running]);

  const change = (changes: Partial<Tab>) =>
    setKept((before) => ({ ...before, tabs: before.tabs.map((each) => (each.id === before.current ? { ...each, ...changes } : each)) }));
  const select = (id: number) => setKept((before) => ({ ...before, current: id }));
  const open = (query: string, variables = "") =>
    setKept((before) => {
      const id = Math.max(0, ...before.tabs.map((each) => each.id)) + 1;
      return { tabs: [...before.tabs, { id, query, variables, headers: "" }], current: id };
    });
  const close = (id: number) =>
    setKept((before) => {
      const index = before.tabs.findIndex((each) => each.id === id);
      const left = before.tabs.filter((each) => each.id !== id);
      if (left.length === 0) return { tabs: [{ id: id + 1, query: exampleOf(name), variables: "", headers: "" }], current: id + 1 };
      return { tabs: left, current: before.current === id ? (left[Math.max(0, index - 1)]?.id ?? 0) : before.current };
    });
  const go = (topic: Topic | null) => {
    setSide("documentation");
    setSearch("");
    setTopics((before) => (topic ? [...before, topic] : before.slice(0, -1)));
  };

  const stop = () => {
    running?.abort();
    setRunning(null);
    setOutcome((before) => ({ ...before, note: "stopped" }));
  };
  const run = async () => {
    running?.abort();
    const own = new AbortController();
    const began = performance.now();
    try {
      const variables = objectOf(tab.variables, "variables");
      const headers = headersOf(tab.headers);
      const request: Request = { query: tab.query, ...(Object.keys(variables).length ? { variables } : {}) };
      setRunning(own);
      setOutcome((before) => ({ ...before, query: tab.query, note: "running", problem: "", errors: NONE }));
      setHistory(remembered(name, tab.query, tab.variables));
      if (isSubscription(tab.query)) await listen(name, request, headers, own.signal, setOutcome);
      else {
        const { result, status, bytes } = await ask(name, request, headers, own.signal);
        const errors = result.errors ?? NONE;
        const took = Math.round(performance.now() - began);
        setOutcome({ query: tab.query, text: shown(result), note: `${status}, ${took} ms, ${bytes.toLocaleString("en")} bytes${errors.length ? `, errors: ${errors.length}` : ""}`, problem: "", errors });
      }
    } catch (error) {
      if (!own.signal.aborted && !(error instanceof Problem && error.status === 401)) setOutcome((before) => ({ ...before, note: "", problem: textOf(error) }));
    } finally {
      setRunning((before) => (before === own ? null : before));
    }
  };
  const prettify = () => {
    try {
      const variables = tab.variables.trim() ? `${shown(JSON.parse(tab.variables))}\n` : tab.variables;
      change({ query: formatted(tab.query), variables });
      revise((before) => before + 1);
    } catch (error) {
      setOutcome((before) => ({ ...before, problem: `Not prettified: ${textOf(error)}` }));
    }
  };
  const share = `${location.origin}${addressOf(name)}?${new URLSearchParams({ query: tab.query, ...(tab.variables.trim() ? { variables: tab.variables } : {}) })}`;
  const keys = { "Mod-Enter": () => void run(), "Shift-Alt-f": prettify };

  return (
    <div class="page workspace">
      <h1 class="hidden-text">{name}</h1>
      <section class="panel ask" aria-label="Query">
        <Tabs tabs={tabs} current={tab.id} select={select} close={close} add={() => open("")} />
        <QueryEditor of={String(tab.id)} text={tab.query} revision={revision} onChange={(query) => change({ query })} schema={schema.value ?? null} problems={outcome.query === tab.query ? outcome.errors : NONE} keys={keys} show={go} />
        <p class="line">
          <button type="button" class="primary" aria-keyshortcuts="Control+Enter" onClick={() => void run()}>
            Run
          </button>
          {running && (
            <button type="button" onClick={stop}>
              Stop
            </button>
          )}
          <button type="button" aria-keyshortcuts="Shift+Alt+F" onClick={prettify}>
            Prettify
          </button>
          <Copy text={share} what="link" />
          <span class="muted">Ctrl+Enter runs, Ctrl+Space completes, Ctrl+click documents. Tab leaves the field.</span>
        </p>
        <div class="line" role="group" aria-label="Sent with the query">
          {(["variables", "headers"] as const).map((each) => (
            <button key={each} type="button" class="small" aria-pressed={part === each} onClick={() => setPart(each)}>
              {each === "variables" ? "Variables" : "Headers"}
              {tab[each].trim() && " •"}
            </button>
          ))}
          {part === "headers" && <span class="muted">Headers stay on this page: they are not stored.</span>}
        </div>
        <div class="lower">
          <Editor key={part} label={part === "variables" ? "Variables, as JSON" : "Headers, as JSON"} of={String(tab.id)} text={tab[part]} revision={revision} onChange={(text) => change({ [part]: text })} language={JSON_TEXT} keys={keys} />
        </div>
      </section>
      <section class="panel" aria-labelledby="result-title">
        <header>
          <h2 id="result-title">Result</h2>
          {outcome.text && <Copy text={outcome.text} what="result" />}
        </header>
        <p class="muted note" role="status">
          {outcome.note}
        </p>
        {outcome.problem && (
          <p class="bad" role="alert">
            {outcome.problem}
          </p>
        )}
        <pre class="log result" tabIndex={0} aria-labelledby="result-title">
          {outcome.text}
        </pre>
      </section>
      <section class="panel side" aria-label={side === "documentation" ? "Documentation" : "History"}>
        <div class="line" role="group" aria-label="Panel">
          <button type="button" class="small" aria-pressed={side === "documentation"} onClick={() => setSide("documentation")}>
            Documentation
          </button>
          <button type="button" class="small" aria-pressed={side === "history"} onClick={() => setSide("history")}>
            History
          </button>
        </div>
        {side === "history" ? (
          <Past
            history={history}
            open={(query, variables) => open(query, variables)}
            clear={() => {
              setHistory(forget(name));
              say("The history is cleared.");
            }}
          />
        ) : schema.value ? (
          <Documentation schema={schema.value} topics={topics} go={go} search={search} setSearch={setSearch} />
        ) : schema.error ? (
          <ErrorPanel error={schema.error} retry={schema.reload} />
        ) : (
          <p class="muted">The schema is read.</p>
        )}
      </section>
    </div>
  );
}

interface QueryProps {
  of: string;
  text: string;
  revision: number;
  onChange: (text: string) => void;
  schema: GraphQLSchema | null;
  problems: readonly Placed[];
  keys: Readonly<Record<string, () => void>>;
  show: (topic: Topic) => void;
}

/** The editor of the query: it knows the schema. */
function QueryEditor({ of, text, revision, onChange, schema, problems, keys, show }: QueryProps) {
  const latest = useRef(show);
  latest.current = show;
  const language = useMemo(
    () =>
      graphql(undefined, {
        onShowInDocs: (field, type, parent) => {
          if (field && parent) latest.current({ type: parent.replace(/[[\]!]/g, ""), field });
          else if (type) latest.current({ type: type.replace(/[[\]!]/g, "") });
        },
      }),
    [],
  );
  const configure = useCallback((view: EditorView) => updateSchema(view, schema ?? undefined), [schema]);
  return <Editor label="Query" of={of} text={text} revision={revision} onChange={onChange} language={language} configure={configure} problems={problems} keys={keys} autofocus />;
}

/** Follow a subscription: the latest events first. */
async function listen(name: string, request: Request, headers: Headers, signal: AbortSignal, set: (outcome: Outcome) => void): Promise<void> {
  const found: string[] = [];
  let count = 0;
  const show = (note: string, errors: readonly Placed[] = NONE) => signal.aborted || set({ query: request.query, text: found.join("\n"), note: `${note}, events: ${count}`, problem: "", errors });
  await follow(name, request, headers, signal, {
    open: () => show("listening"),
    next: (result) => {
      count += 1;
      found.unshift(shown(result));
      found.length = Math.min(found.length, MOST);
      show("listening", result.errors);
    },
    cut: () => show("connection lost, trying again"),
  });
  show("ended");
}

interface TabsProps {
  tabs: readonly Tab[];
  current: number;
  select: (id: number) => void;
  close: (id: number) => void;
  add: () => void;
}

function Tabs({ tabs, current, select, close, add }: TabsProps) {
  return (
    <div class="line tabs" role="group" aria-label="Queries">
      {tabs.map((tab, index) => {
        const title = `${index + 1}: ${titleOf(tab.query)}`;
        return (
          <span key={tab.id} class="tab">
            <button type="button" class="small" aria-pressed={tab.id === current} onClick={() => select(tab.id)}>
              {title}
            </button>
            <button type="button" class="icon" aria-label={`Close ${title}`} onClick={() => close(tab.id)}>
              ✕
            </button>
          </span>
        );
      })}
      <button type="button" class="small" onClick={add}>
        New query
      </button>
    </div>
  );
}
