// The keys of a barcode scanner, which types like a keyboard: a code, then Enter or Tab.

import { codeOf, isSound, withoutIdentifier } from "./codes";

/** Keys of a scanner have a gap of at most this, in milliseconds, and `MEAN` on average: people type slower. */
const GAP = 100;
const MEAN = 35;
const LEAST = 6;
/** Digits typed slowly, by a radio scanner, are a code if there are this many: a quantity is shorter. */
const LEAST_SLOW = 12;
const SLOW_GAP = 3_000;
/** Digits, or an AIM identifier of the scanner and any code. */
const FAST = /(\][A-Za-z]\d.+|\d+)$/;
const SLOW = /(\][A-Za-z]\d)?\d+$/;
const EAN_13 = /^(\][A-Za-z]\d)?\d{12,13}$/;

export interface Press {
  text: string;
  /** In milliseconds. */
  at: number;
}

/**
 * The character that a scanner with an English keyboard means. A French keyboard has other characters on the keys of digits, so the
 * place of the key counts, not its character.
 */
export function meant(event: Pick<KeyboardEvent, "key" | "code" | "shiftKey">): string {
  const digit = /^(?:Digit|Numpad)(\d)$/.exec(event.code)?.[1];
  if (digit && !event.shiftKey) return digit;
  if (event.code === "BracketRight" && !event.shiftKey && event.key !== "]") return "]";
  return event.key.length === 1 ? event.key : "";
}

/**
 * The code at the end of the keys before Enter or Tab, or null if a person typed it. Tab ends only what came fast.
 *
 * A busy computer makes a gap inside a code, and a quantity may have been typed just before one: a sound code is preferred.
 */
export function scannedIn(presses: readonly Press[], end: "Enter" | "Tab", at: number): string | null {
  const fast = fastIn(presses, at);
  const slow = end === "Enter" ? slowIn(presses, at) : null;
  const found = [fast, slow].filter((code) => code !== null).sort((a, b) => b.length - a.length);
  return found.find((code) => EAN_13.test(code) && isGood(code)) ?? found.reverse().find(isGood) ?? found.at(-1) ?? null;
}

function fastIn(presses: readonly Press[], at: number): string | null {
  const fast = tail(presses, at, GAP);
  const code = FAST.exec(textIn(fast))?.[0] ?? "";
  const first = fast[fast.length - code.length];
  return first && code.length >= LEAST && (at - first.at) / code.length < MEAN ? code : null;
}

function slowIn(presses: readonly Press[], at: number): string | null {
  const code = SLOW.exec(textIn(tail(presses, at, SLOW_GAP)))?.[0] ?? "";
  return withoutIdentifier(code).length >= LEAST_SLOW ? code : null;
}

const isGood = (text: string): boolean => isSound(codeOf(text) ?? "");

const textIn = (presses: readonly Press[]): string => presses.map(({ text }) => text).join("");

/** The last presses between which no gap was longer. */
function tail(presses: readonly Press[], end: number, gap: number): readonly Press[] {
  let start = presses.length;
  for (let next = end; start > 0; start -= 1) {
    const press = presses[start - 1];
    if (!press || next - press.at > gap) break;
    next = press.at;
  }
  return presses.slice(start);
}
