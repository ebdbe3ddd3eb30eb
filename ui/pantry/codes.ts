// Codes and quantities as people and scanners write them.

const AIM = /^\][A-Za-z]\d/;
const UPC_E = /^[01]\d{7}$/;

/**
 * A GTIN of 13 digits from a typed or scanned text, null for any other text. Shorter codes get zeros in front (GS1 General
 * Specifications, 3.3.2): UPC-A of 12 digits, EAN-8 of 8 digits whose last one fits, UPC-E as its UPC-A. A scanner may put an AIM
 * identifier (ISO/IEC 15424) before the digits. A GTIN-14 of 14 digits with the indicator 0 loses that 0.
 */
export function codeOf(typed: string): string | null {
  const digits = typed.trim().replace(AIM, "");
  if (/^\d{12,13}$/.test(digits)) return digits.padStart(13, "0");
  if (/^0\d{13}$/.test(digits)) return digits.slice(1);
  if (!/^\d{8}$/.test(digits)) return null;
  const short = [digits.padStart(13, "0"), ...(UPC_E.test(digits) ? [upcA(digits).padStart(13, "0")] : [])];
  return short.find(isSound) ?? null;
}

/** The 12 digits that a UPC-E stands for (GS1 General Specifications, 5.2.2.4.2). */
function upcA(digits: string): string {
  const [system, a, b, c, d, e, rule, check] = digits;
  if (Number(rule) <= 2) return `${system}${a}${b}${rule}0000${c}${d}${e}${check}`;
  if (rule === "3") return `${system}${a}${b}${c}00000${d}${e}${check}`;
  if (rule === "4") return `${system}${a}${b}${c}${d}00000${e}${check}`;
  return `${system}${a}${b}${c}${d}${e}0000${rule}${check}`;
}

/** Whether the check digit fits: weights 1, 3, 1, 3, …; ten less the sum, modulo ten. */
export function isSound(ean13: string): boolean {
  const digits = [...ean13].map(Number);
  const sum = digits.slice(0, 12).reduce((total, digit, place) => total + digit * (place % 2 ? 3 : 1), 0);
  return digits.length === 13 && (10 - (sum % 10)) % 10 === digits[12];
}

/** A quantity from a typed text, with a comma or a point; NaN for any other text, or for more than three places. */
export function quantityOf(typed: string): number {
  const text = typed.trim().replace(",", ".");
  return /^\d{1,7}(\.\d{1,3})?$/.test(text) ? Number(text) : Number.NaN;
}

export const amount = (value: number): string => value.toLocaleString("en", { maximumFractionDigits: 3, useGrouping: false });
