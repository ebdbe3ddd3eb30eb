// Codes, quantities and the keys of scanners.

import assert from "node:assert/strict";
import { test } from "node:test";
import { amount, codeOf, isSound, itemOf, ownCode, quantityOf } from "../pantry/codes/codes";
import { pressed, scannedIn, textOf, type Press } from "../pantry/codes/presses";
import quantities from "./quantities.json";
import scans from "./scans.json";

const FLOUR = "4006381333931";
const FRENCH: Readonly<Record<string, string>> = { 1: "&", 2: "\u00e9", 3: '"', 4: "'", 5: "(", 6: "-", 7: "\u00e8", 8: "_", 9: "\u00e7", 0: "\u00e0", "]": "$" };
const NO_KEYS = { shiftKey: false, ctrlKey: false, altKey: false, metaKey: false, repeat: false };

type Stroke = Parameters<typeof pressed>[1];

const placeOf = (character: string): string =>
  character === "]" ? "BracketRight" : /\d/.test(character) ? `Digit${character}` : `Key${character.toUpperCase()}`;

/** The keys of a text, with this gap between them in milliseconds. */
const strokes = (text: string, gap: number, from = 1_000, isFrench = false): Stroke[] =>
  [...text].map((character, place) => ({
    ...NO_KEYS,
    key: (isFrench && FRENCH[character]) || character,
    code: placeOf(character),
    timeStamp: from + place * gap,
  }));

/** A key without a character, such as F8, or one that is pressed with others. */
const stroke = (key: string, timeStamp: number, part: Partial<Stroke> = {}): Stroke => ({ ...NO_KEYS, key, code: key, timeStamp, ...part });

/** The text that the keys before Enter or Tab scan; null if they are taken for typing. */
function scannedBy(keys: readonly Stroke[], end: "Enter" | "Tab" = "Enter", gap = 5): string | null {
  const presses = keys.reduce<readonly Press[]>(pressed, []);
  const found = scannedIn(presses, end, (keys.at(-1)?.timeStamp ?? 0) + gap);
  return found && textOf(found);
}

/** The GTIN of a code that a scanner types. */
function typed(code: string, gap: number, end: "Enter" | "Tab" = "Enter", isFrench = false): string | null {
  const found = scannedBy(strokes(code, gap, 1_000, isFrench), end);
  return found === null ? null : codeOf(found);
}

for (const { scan, code } of scans) {
  test(`the text ${JSON.stringify(scan)} is ${code ?? "no code"}`, () => {
    const found = codeOf(scan);
    assert.equal(found && isSound(found) ? found : null, code);
  });
}

for (const scan of scans.map(({ scan }) => scan).filter((scan) => scan.length >= 6)) {
  test(`the text ${JSON.stringify(scan)} is scanned as a whole, never its end`, () => {
    for (const end of ["Enter", "Tab"] as const) assert.equal(scannedBy(strokes(scan, 8), end), scan);
  });
}

test("a gap of a busy computer makes no code of the end of a text", () => {
  const keys = [...strokes("LOT-", 8), ...strokes("96385074", 8, 1_400)];
  assert.equal(scannedBy(keys), "LOT-96385074");
  const lot = [...strokes("]C110", 8), ...strokes("LOT", 8, 1_300), ...strokes("96385074", 8, 1_900)];
  assert.equal(codeOf(scannedBy(lot) ?? ""), null);
});

for (const [name, keys] of [
  ["a function key", [stroke("F8", 1_050)]],
  ["a key that edits", [stroke("Backspace", 1_050)]],
  ["a key with Ctrl", [stroke("Control", 1_046), stroke("]", 1_050, { ctrlKey: true })]],
  ["a character of the keypad with Alt", ["0", "0", "2", "9"].map((key, place) => stroke(key, 1_042 + 4 * place, { code: `Numpad${key}`, altKey: true }))],
] as const) {
  test(`${name} in a scan is a separator of GS1, and does not begin a new text`, () => {
    const found = scannedBy([...strokes("]C110LOT", 5), ...keys, ...strokes("96385074", 5, 1_058)]);
    assert.equal(codeOf(found ?? ""), null);
    assert(found?.startsWith("]C110LOT") && found.endsWith("96385074"));
  });
}

test("a key that a person edits with begins a new text", () => {
  assert.equal(scannedBy([...strokes("milk", 150), stroke("Escape", 1_900), ...strokes(FLOUR, 220, 2_200)]), FLOUR);
});

test("a key that is held down is no scan", () => {
  const held = strokes("0000000000000", 20).map((key, place) => ({ ...key, repeat: place > 0 }));
  assert.equal(scannedBy(held), null);
});

test("an identifier that a German keyboard has on another key is read", () => {
  const bracket = { ...NO_KEYS, key: "]", code: "Digit9", timeStamp: 1_000 };
  for (const part of [{ ctrlKey: true, altKey: true }, { altKey: true }, {}]) {
    assert.equal(codeOf(scannedBy([{ ...bracket, ...part }, ...strokes(`E0${FLOUR}`, 8, 1_008)]) ?? ""), FLOUR);
  }
});

test("eight digits that fit twice are the code that is known", () => {
  assert.equal(codeOf("04252614", (code) => code === "0000004252614"), isSound("0000004252614") ? "0000004252614" : "0042100005264");
});

for (const [name, code, gap, end, isFrench, gtin] of [
  ["a short code", "96385074", 8, "Enter", false, "0000096385074"],
  ["a code that ends with Tab", "96385074", 8, "Tab", false, "0000096385074"],
  ["a code on a French keyboard", FLOUR, 12, "Enter", true, FLOUR],
  ["a code with an AIM identifier on a French keyboard", `]E0${FLOUR}`, 12, "Enter", true, FLOUR],
  ["a DataMatrix", `]d2010${FLOUR}1726013110LOT7`, 6, "Enter", false, FLOUR],
  ["a code of a slow radio scanner", FLOUR, 220, "Enter", false, FLOUR],
] as const) {
  test(`the keys of ${name} are a scan`, () => assert.equal(typed(code, gap, end, isFrench), gtin));
}

test("digits that a person types are no scan", () => {
  assert.equal(typed("96385074", 150), null);
  assert.equal(typed(FLOUR, 220, "Tab"), null);
});

test("a quantity before a code does not belong to it", () => {
  assert.equal(scannedBy([...strokes("12", 300), ...strokes(FLOUR, 8, 1_700)]), FLOUR);
});

test("a code with a gap of a busy computer inside is one code", () => {
  for (const place of [1, 2, 5, 9, 12]) {
    assert.equal(scannedBy([...strokes(FLOUR.slice(0, place), 8), ...strokes(FLOUR.slice(place), 8, 1_400)]), FLOUR);
  }
});

test("a pack names its item", () => assert.equal(itemOf("14006381333938"), FLOUR));

test("an own code is sound, and free for a household", () => {
  const code = ownCode();
  assert(isSound(code));
  assert.match(code, /^29\d{11}$/);
});

for (const { written, quantity } of quantities) {
  test(`the quantity ${JSON.stringify(written)} is ${quantity ?? "refused"}`, () => assert.equal(quantityOf(written), quantity ?? Number.NaN));
}

test("an amount has no more digits than it needs", () => assert.deepEqual([10.3, 1234.5, 2].map(amount), ["10.3", "1234.5", "2"]));
