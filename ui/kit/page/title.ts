// The title of the page: each part that is shown names itself, and the innermost of them is named.

import { useLayoutEffect, useRef } from "preact/hooks";

interface Named {
  text: string;
  depth: number;
}

const named: Named[] = [];
let service = "";

/** The name that ends every title. */
export function nameService(name: string): void {
  service = name;
  apply();
}

function apply(): void {
  const inner = named.reduce<Named | null>((found, each) => (each.text && (!found || each.depth >= found.depth) ? each : found), null);
  document.title = inner ? `${inner.text} · ${service}` : service;
}

/** Name the page while a component is shown. `depth` is 0 for a screen, 1 for a thing that is open in it; empty names nothing. */
export function useTitle(text: string, depth = 0): void {
  const own = useRef<Named>({ text, depth });
  useLayoutEffect(() => {
    named.push(own.current);
    return () => {
      named.splice(named.indexOf(own.current), 1);
      apply();
    };
  }, []);
  useLayoutEffect(() => {
    own.current.text = text;
    apply();
  }, [text]);
}
