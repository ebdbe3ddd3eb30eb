// The keys of a barcode scanner, which types like a keyboard: a text, then Enter or Tab.

import { codeOf, isSound, withoutIdentifier } from "./codes";

/** Keys of a scanner have a gap of at most this, in milliseconds, and `MEAN` on average: people type slower. */
const GAP = 100;
const MEAN = 35;
const LEAST = 6;
/** So many keys before a longer gap, at a scanner's speed, are the first part of the same text: a busy computer makes such gaps. */
const LEAST_BEFORE = 3;
/** Digits typed slowly, by a radio scanner, are a code if there are this many: a quantity is shorter. */
const LEAST_SLOW = 12;
const SLOW_GAP = 3_000;
const SLOW = /^(\][A-Za-z]\d)?\d+$/;
const EAN_13 = /^(\][A-Za-z]\d)?\d{12,13}$/;
const MODIFIERS = new Set(["Shift", "CapsLock", "Alt", "AltGraph", "Control", "Meta", "Fn", "NumLock"]);
const FUNCTION_KEY = /^F\d/;
/** Stands for a key or a combination of keys that a scanner sends for a control character, such as the separator of GS1. */
const CONTROL = "\u001d";

export interface Press {
  /** The character that a scanner means. */
  text: string;
  /** The character that a field gets, if any. */
  typed: string;
  /** In milliseconds. */
  at: number;
}

type Key = Pick<KeyboardEvent, "key" | "code" | "shiftKey" | "ctrlKey" | "altKey" | "metaKey" | "repeat" | "timeStamp">;

/** The presses with one more key. They start again after a pause, and after a key with which a person edits or moves. */
export function pressed(presses: readonly Press[], event: Key): readonly Press[] {
  const { key, timeStamp: at } = event;
  if (MODIFIERS.has(key)) return presses;
  if (event.repeat) return [];
  const pause = at - (presses.at(-1)?.at ?? Number.NEGATIVE_INFINITY);
  const before = pause > SLOW_GAP ? [] : presses;
  if (isCharacter(event)) return [...before, { text: meant(event), typed: key, at }];
  return key.length > 1 && !FUNCTION_KEY.test(key) && pause > GAP ? [] : [...before, { text: CONTROL, typed: "", at }];
}

/** Whether a key gives its character. AltGr is Ctrl and Alt on some systems, and Alt with digits of the keypad is another character. */
function isCharacter({ key, code, ctrlKey, altKey, metaKey }: Key): boolean {
  if (key.length !== 1 || metaKey) return false;
  return ctrlKey === altKey || (altKey && !code.startsWith("Numpad"));
}

/**
 * The character that a scanner with an English keyboard means. A French keyboard has other characters on the keys of digits, so the
 * place of the key counts, not its character.
 */
function meant({ key, code, shiftKey, altKey }: Key): string {
  if (shiftKey || altKey || key === "]") return key;
  return /^(?:Digit|Numpad)(\d)$/.exec(code)?.[1] ?? (code === "BracketRight" ? "]" : key);
}

export const textOf = (presses: readonly Press[]): string => presses.map(({ text }) => text).join("");

/**
 * The presses of the text that was scanned before Enter or Tab, or null if a person typed them. Tab ends only what came fast.
 *
 * What comes at a scanner's speed is one text, of which no part is a code. A busy computer makes a gap inside a code, and a quantity
 * may have been typed just before one: a sound code is preferred.
 */
export function scannedIn(presses: readonly Press[], end: "Enter" | "Tab", at: number): readonly Press[] | null {
  const fast = fastIn(presses, at);
  const slow = end === "Enter" ? slowIn(presses, at) : null;
  const found = [fast, slow].filter((each) => each !== null).sort((a, b) => a.length - b.length);
  return found.findLast((each) => EAN_13.test(textOf(each)) && isGood(each)) ?? found.find(isGood) ?? found.at(-1) ?? null;
}

function fastIn(presses: readonly Press[], at: number): readonly Press[] | null {
  let start = burstBefore(presses, presses.length, at, GAP);
  const last = presses[start];
  if (!last || (at - last.at) / (presses.length - start) >= MEAN) return null;
  for (;;) {
    const before = burstBefore(presses, start, presses[start - 1]?.at ?? 0, GAP);
    if (start - before < LEAST_BEFORE || meanGap(presses.slice(before, start)) >= MEAN) break;
    start = before;
  }
  return presses.length - start >= LEAST ? presses.slice(start) : null;
}

function slowIn(presses: readonly Press[], at: number): readonly Press[] | null {
  const found = presses.slice(burstBefore(presses, presses.length, at, SLOW_GAP));
  const text = textOf(found);
  return SLOW.test(text) && withoutIdentifier(text).length >= LEAST_SLOW ? found : null;
}

const isGood = (presses: readonly Press[]): boolean => isSound(codeOf(textOf(presses)) ?? "");

const meanGap = (presses: readonly Press[]): number => ((presses.at(-1)?.at ?? 0) - (presses[0]?.at ?? 0)) / (presses.length - 1);

/** Where the presses before `end` begin that have no longer gap between them, and to the time `at`. */
function burstBefore(presses: readonly Press[], end: number, at: number, gap: number): number {
  let start = end;
  for (let next = at; start > 0; start -= 1) {
    const press = presses[start - 1];
    if (!press || next - press.at > gap) break;
    next = press.at;
  }
  return start;
}
