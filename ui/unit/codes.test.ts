// Codes, quantities and the keys of scanners.

import assert from "node:assert/strict";
import { test } from "node:test";
import { amount, codeOf, isSound, itemOf, ownCode, quantityOf } from "../pantry/codes/codes";
import { meant, scannedIn } from "../pantry/codes/presses";

const FLOUR = "4006381333931";
const FRENCH: Readonly<Record<string, string>> = { 1: "&", 2: "\u00e9", 3: '"', 4: "'", 5: "(", 6: "-", 7: "\u00e8", 8: "_", 9: "\u00e7", 0: "\u00e0", "]": "$" };

/** The GTIN of a code that a scanner types, with this gap between its keys in milliseconds; null if it is taken for typing. */
function typed(code: string, gap: number, end: "Enter" | "Tab" = "Enter", isFrench = false): string | null {
  const presses = [...code].map((character, place) => {
    const place_of_key = character === "]" ? "BracketRight" : /\d/.test(character) ? `Digit${character}` : `Key${character.toUpperCase()}`;
    const key = (isFrench && FRENCH[character]) || character;
    return { text: meant({ key, code: place_of_key, shiftKey: false }), at: 1_000 + place * gap };
  });
  const found = scannedIn(presses, end, (presses.at(-1)?.at ?? 0) + 5);
  return found === null ? null : codeOf(found);
}

for (const [name, code, gtin] of [
  ["EAN-8", "96385074", "0000096385074"],
  ["EAN-8 with an AIM identifier", "]E496385074", "0000096385074"],
  ["UPC-E", "04252614", "0042100005264"],
  ["EAN-13 with an AIM identifier", "]E04006381333931", FLOUR],
  ["GTIN-14 of one item", "04006381333931", FLOUR],
  ["GTIN-14 of a pack", "14006381333938", "14006381333938"],
  ["UPC-A", "036000291452", "0036000291452"],
  ["DataMatrix", `]d2010${FLOUR}1726013110LOT7`, FLOUR],
  ["GS1 with parentheses", `(01)0${FLOUR}`, FLOUR],
] as const) {
  test(`a ${name} stands for a GTIN`, () => assert.equal(codeOf(code), gtin));
}

test("eight digits that fit twice are the code that is known", () => {
  assert.equal(codeOf("04252614", (code) => code === "0000004252614"), isSound("0000004252614") ? "0000004252614" : "0042100005264");
});

test("other texts are no codes", () => {
  for (const text of ["", "1234567", "milk", "96385075", "400638133393100"]) assert.equal(codeOf(text), null);
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
  const quantity = [..."12"].map((text, place) => ({ text, at: 300 * place }));
  const code = [...FLOUR].map((text, place) => ({ text, at: 700 + 8 * place }));
  assert.equal(scannedIn([...quantity, ...code], "Enter", 810), FLOUR);
});

test("a pack names its item", () => assert.equal(itemOf("14006381333938"), FLOUR));

test("an own code is sound, and free for a household", () => {
  const code = ownCode();
  assert(isSound(code));
  assert.match(code, /^29\d{11}$/);
});

test("a quantity has a comma or a point, and at most three decimal places", () => {
  assert.deepEqual(["0,3", " 1.25 ", "7", "0.0001", "1e3", "-1", ""].map(quantityOf), [0.3, 1.25, 7, NaN, NaN, NaN, NaN]);
});

test("an amount has no more digits than it needs", () => assert.deepEqual([10.3, 1234.5, 2].map(amount), ["10.3", "1234.5", "2"]));
