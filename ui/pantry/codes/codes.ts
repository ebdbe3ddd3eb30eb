// Codes and quantities as people and scanners write them.

/** An AIM identifier of a scanner (ISO/IEC 15424), before the code. */
const AIM = /^\][A-Za-z]\d/;
/** Identifiers of codes whose text has elements of GS1: GS1-128, DataBar, DataMatrix, QR. */
const GS1 = /^\](C1|e0|d2|Q3)/;
const EAN_8 = /^\]E4/;
const UPC_E = /^[01]\d{7}$/;
/** The element 01: the GTIN of the item, of 14 digits. Some scanners print parentheses around its number. */
const ITEM = /^(?:\(01\)(\d{14})(?!\d)|01(\d{14}))/;
/** Digits of a quantity, with a point or a comma before decimals. */
const WRITTEN = /^-?(\d{1,40}([.,]\d{1,40})?|[.,]\d{1,40})$/;
/** A comma that may separate thousands. */
const THOUSANDS = /^-?[1-9]\d{0,2},\d{3}$/;
const FOUR_PLACES = /\.\d{3}\d*[1-9]/;
const LARGEST = 9_999_999.999;

export const withoutIdentifier = (text: string): string => text.replace(AIM, "");

/**
 * The GTIN in a typed or scanned text: 13 digits, or 14 for a pack of several, whose first digit is not 0. Null for any other text:
 * digits inside of a text are no code, and of elements of GS1 only the item (01) counts. pantry/domain/gtin.py has the same rule.
 * Shorter codes get zeros in front (GS1 General Specifications, 3.3.2): UPC-A of 12 digits, EAN-8 of 8 digits. 8 digits can also be a
 * UPC-E: `isKnown` decides, or the identifier, or the check digit. If both fit, a first digit of 0 is taken for a UPC-E.
 */
export function codeOf(typed: string, isKnown: (code: string) => boolean = () => false): string | null {
  const text = typed.trim();
  const bare = withoutIdentifier(text);
  const hasElements = GS1.test(text) || bare.startsWith("(");
  const [, marked, plain] = ITEM.exec(bare) ?? [];
  const digits = hasElements ? (marked ?? plain ?? "") : bare;
  if (/^\d{12,13}$/.test(digits)) return digits.padStart(13, "0");
  if (/^\d{14}$/.test(digits)) return digits.replace(/^0/, "");
  if (!/^\d{8}$/.test(digits)) return null;
  const ean8 = digits.padStart(13, "0");
  const upc = !EAN_8.test(text) && UPC_E.test(digits) ? [upcA(digits).padStart(13, "0")] : [];
  const sound = (digits.startsWith("0") ? [...upc, ean8] : [ean8, ...upc]).filter(isSound);
  return sound.find(isKnown) ?? sound[0] ?? null;
}

/** The code of the item that a GTIN of 14 digits packs: its digits without the first, with their own check digit. */
export function itemOf(gtin14: string): string {
  const first = gtin14.slice(1, 13);
  return `${first}${checkDigit(first)}`;
}

/** A new code for a thing without one: the prefix 29 is free for use inside of a household (pantry/domain/gtin.py). */
export function ownCode(): string {
  const number = crypto.getRandomValues(new Uint32Array(2)).reduce((total, part) => (total * 2 ** 32 + part) % 10 ** 10, 0);
  const first = `29${String(Math.floor(number)).padStart(10, "0")}`;
  return `${first}${checkDigit(first)}`;
}

/** The 12 digits that a UPC-E stands for (GS1 General Specifications, 5.2.2.4.2). */
function upcA(digits: string): string {
  const [system, a, b, c, d, e, rule, check] = digits;
  if (Number(rule) <= 2) return `${system}${a}${b}${rule}0000${c}${d}${e}${check}`;
  if (rule === "3") return `${system}${a}${b}${c}00000${d}${e}${check}`;
  if (rule === "4") return `${system}${a}${b}${c}${d}00000${e}${check}`;
  return `${system}${a}${b}${c}${d}${e}0000${rule}${check}`;
}

/** The check digit: weights 3, 1, 3, 1, … from the right; ten less the sum, modulo ten. */
function checkDigit(first: string): number {
  const sum = [...first].reverse().reduce((total, digit, place) => total + Number(digit) * (place % 2 ? 1 : 3), 0);
  return (10 - (sum % 10)) % 10;
}

/** Whether a code of 13 or 14 digits ends with its check digit. */
export const isSound = (code: string): boolean => /^\d{13,14}$/.test(code) && checkDigit(code.slice(0, -1)) === Number(code.at(-1));

/**
 * A quantity from a typed text; NaN for any other text. It has a point or a comma before decimals, at most three decimal places, and
 * no comma that may separate thousands. pantry/domain/quantity.py has the same rule.
 */
export const quantityOf = (typed: string): number => (problemOf(typed) ? Number.NaN : numberOf(typed.trim()));

/** Why a typed text is no quantity, empty if it is one. */
export function problemOf(typed: string): string {
  const text = typed.trim();
  if (!WRITTEN.test(text)) return `"${text}" is not a number.`;
  if (THOUSANDS.test(text)) return `${text} is ambiguous: write ${text.replace(",", "")} or ${text.replace(",", ".")}.`;
  if (numberOf(text) < 0) return "A quantity must not be negative.";
  if (numberOf(text) > LARGEST) return `A quantity is at most ${LARGEST}.`;
  return FOUR_PLACES.test(text.replace(",", ".")) ? "A quantity has at most three decimal places." : "";
}

const numberOf = (text: string): number => Number(text.replace(",", ".")) || 0; // not -0

export const amount = (value: number): string => value.toLocaleString("en", { maximumFractionDigits: 3, useGrouping: false });
