// Keys: each screen declares its keys; the help lists the present ones. None counts in a field or with a modifier.

import { useLayoutEffect, useRef } from "preact/hooks";

export interface Key {
  /** The pressed keys: `j`, `Enter`, or two after each other: `g t`. */
  keys: string;
  does: string;
  /** Gives false where the key does nothing now, so that the browser's own meaning holds. */
  run: () => boolean | void;
}

const active: { current: readonly Key[] }[] = [];
const PATIENCE = 1_000;
let first = "";
let firstAt = 0;

/** The keys of a component hold while it is there; the keys of the latest come first. */
export function useKeys(keys: readonly Key[]): void {
  const entry = useRef(keys);
  entry.current = keys;
  useLayoutEffect(() => {
    active.push(entry);
    return () => {
      active.splice(active.indexOf(entry), 1);
    };
  }, []);
}

/** All keys that hold now, each once. */
export function keysNow(): readonly Key[] {
  const found = new Map<string, Key>();
  for (const entry of [...active].reverse()) {
    for (const key of entry.current) if (!found.has(key.keys)) found.set(key.keys, key);
  }
  return [...found.values()];
}

function isTyping(target: EventTarget | null): boolean {
  return target instanceof HTMLElement && target.matches("input, textarea, select, [contenteditable]");
}

addEventListener("keydown", (event) => {
  if (event.defaultPrevented || event.metaKey || event.ctrlKey || event.altKey) return;
  if (isTyping(event.target) && event.key !== "Escape") return;
  if (document.querySelector("dialog:modal")) return; // which is closed by Escape without our help
  const sequence = first && event.timeStamp - firstAt < PATIENCE ? `${first} ${event.key}` : "";
  const found = keysNow();
  for (const wanted of sequence ? [sequence, event.key] : [event.key]) {
    const key = found.find((each) => each.keys === wanted);
    if (key && key.run() !== false) {
      event.preventDefault();
      first = "";
      return;
    }
  }
  first = found.some((each) => each.keys.startsWith(`${event.key} `)) ? event.key : "";
  firstAt = event.timeStamp;
});
