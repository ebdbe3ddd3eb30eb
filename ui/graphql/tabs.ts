// The open queries and the queries that were run, of one function, kept by this browser. Headers can hold secrets, and are not kept.

import { keep, kept } from "../kit/data/kept";

export interface Tab {
  id: number;
  query: string;
  variables: string;
  headers: string;
}

export interface Ran {
  query: string;
  variables: string;
  at: number;
}

export interface Kept {
  tabs: readonly Tab[];
  current: number;
}

const MOST = 50;

const EXAMPLES: Readonly<Record<string, string>> = {
  graphql: "{\n  hello\n}\n",
  pantry:
    "{\n  products(first: 10, filter: { low: true }) {\n    nodes {\n      name\n      quantity\n      unit\n      movements(first: 3) {\n        nodes {\n          kind\n          amount\n          createdAt\n        }\n      }\n    }\n    pageInfo {\n      hasNextPage\n      endCursor\n    }\n  }\n}\n",
  tracker:
    "{\n  analyses(first: 10) {\n    nodes {\n      repoUrl\n      project\n      average\n      exceeded\n      functions(first: 5) {\n        nodes {\n          function\n          crap\n          complexity\n          coverage\n          file\n          line\n        }\n      }\n    }\n  }\n}\n",
};

export const exampleOf = (name: string): string => EXAMPLES[name] ?? "{\n  __typename\n}\n";

const keyOf = (name: string, part: "tabs" | "history"): string => `graphql:${name}:${part}`;

/** The tabs of the last visit; a query in the address gets a tab. */
export function restored(name: string): Kept {
  const found = kept<Kept | null>(keyOf(name, "tabs"), null);
  const tabs = (found?.tabs ?? []).map((tab, index): Tab => ({ id: index + 1, query: String(tab.query), variables: String(tab.variables), headers: "" }));
  const given = new URLSearchParams(location.search);
  const query = given.get("query");
  const variables = given.get("variables") ?? "";
  if (query !== null) {
    const known = tabs.find((tab) => tab.query === query && tab.variables === variables);
    if (known) return { tabs, current: known.id };
    const tab = { id: tabs.length + 1, query, variables, headers: "" };
    return { tabs: [...tabs, tab], current: tab.id };
  }
  if (tabs.length === 0) return { tabs: [{ id: 1, query: exampleOf(name), variables: "", headers: "" }], current: 1 };
  return { tabs, current: Math.min(Math.max(1, found?.current ?? 1), tabs.length) };
}

export function keepTabs(name: string, { tabs, current }: Kept): void {
  const index = tabs.findIndex((tab) => tab.id === current);
  keep(keyOf(name, "tabs"), { tabs: tabs.map(({ query, variables }) => ({ query, variables })), current: index + 1 });
}

/** The queries that were run, the latest first. */
export const historyOf = (name: string): readonly Ran[] => kept<readonly Ran[]>(keyOf(name, "history"), []);

/** Add a query to the history, once. */
export function remembered(name: string, query: string, variables: string): readonly Ran[] {
  const others = historyOf(name).filter((ran) => ran.query !== query || ran.variables !== variables);
  const history = [{ query, variables, at: Date.now() }, ...others].slice(0, MOST);
  keep(keyOf(name, "history"), history);
  return history;
}

export function forget(name: string): readonly Ran[] {
  keep(keyOf(name, "history"), []);
  return [];
}

/** The name of a query: of its first operation, else its first field. */
export function titleOf(query: string): string {
  const plain = query.replace(/#.*$/gm, "");
  return /\b(?:query|mutation|subscription)\s+(\w+)/.exec(plain)?.[1] ?? /\{\s*(?:\w+\s*:\s*)?(\w+)/.exec(plain)?.[1] ?? "empty";
}
