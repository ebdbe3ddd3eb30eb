// Addresses: the path selects the screen and the open item, the query its view.

import type { ComponentChildren } from "preact";
import { Cell, useCell } from "../data/cell";

export interface Place {
  path: string;
  query: URLSearchParams;
}

export type Params = Readonly<Record<string, string>>;

const here = (): Place => ({ path: location.pathname, query: new URLSearchParams(location.search) });

export const place = new Cell<Place>(here());

addEventListener("popstate", () => place.set(here()));

/** Go to an address of this page. `replace` leaves no step for Back, for changes during typing. */
export function go(address: string, { replace = false }: { replace?: boolean } = {}): void {
  if (address === location.pathname + location.search) return;
  if (replace) history.replaceState(null, "", address);
  else history.pushState(null, "", address);
  place.set(here());
}

/** The address of this path with a changed query: null and the empty text remove a parameter. */
export function withQuery(changes: Record<string, string | null>, path: string = place.value.path): string {
  const query = new URLSearchParams(place.value.query);
  for (const [name, value] of Object.entries(changes)) {
    if (value) query.set(name, value);
    else query.delete(name);
  }
  const text = query.toString();
  return text ? `${path}?${text}` : path;
}

/** The value of `:name` in a pattern such as `/tasks/:id`; null for a path that does not match. */
export function match(pattern: string, path: string): Params | null {
  const wanted = pattern.split("/");
  const given = path.replace(/(.)\/$/, "$1").split("/");
  if (wanted.length !== given.length) return null;
  const params: Record<string, string> = {};
  for (const [index, part] of wanted.entries()) {
    const text = given[index] ?? "";
    if (part.startsWith(":") && text) params[part.slice(1)] = decoded(text);
    else if (part !== text) return null;
  }
  return params;
}

/** A parameter of the address's query, and how to change it. */
export function useQuery(name: string): [string, (value: string, options?: { replace?: boolean }) => void] {
  const { query } = useCell(place);
  return [query.get(name) ?? "", (value, options) => go(withQuery({ [name]: value }), options)];
}

interface LinkProps {
  to: string;
  children: ComponentChildren;
  class?: string;
  title?: string;
  "aria-current"?: "page" | undefined;
  "aria-label"?: string;
  /** The link that opens a table's row. */
  "data-row"?: boolean;
}

/** A link within the page; with a modifier or the middle button it is the browser's. */
export function Link({ to, children, ...rest }: LinkProps) {
  const follow = (event: MouseEvent) => {
    if (event.defaultPrevented || event.button || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
    event.preventDefault();
    go(to);
  };
  return (
    <a {...rest} href={to} onClick={follow}>
      {children}
    </a>
  );
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
