// Codes and quantities as people and scanners write them.

/** An EAN-13 of what was typed, null where that is no code. Twelve digits (UPC-A) are the code that begins with 0. */
export function codeOf(typed: string): string | null {
  const digits = typed.trim();
  return /^\d{12,13}$/.test(digits) ? digits.padStart(13, "0") : null;
}

/** Whether the check digit fits: weights 1, 3, 1, 3, …; ten less the sum, modulo ten. */
export function isSound(ean13: string): boolean {
  const digits = [...ean13].map(Number);
  const sum = digits.slice(0, 12).reduce((total, digit, place) => total + digit * (place % 2 ? 3 : 1), 0);
  return digits.length === 13 && (10 - (sum % 10)) % 10 === digits[12];
}

/** A quantity of what was typed, with a comma or a point; NaN where it is none, or has more than three places. */
export function quantityOf(typed: string): number {
  const text = typed.trim().replace(",", ".");
  return /^\d{1,7}(\.\d{1,3})?$/.test(text) ? Number(text) : Number.NaN;
}

export const amount = (value: number): string => value.toLocaleString("en", { maximumFractionDigits: 3, useGrouping: false });
