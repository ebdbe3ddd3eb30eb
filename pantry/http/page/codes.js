// Codes and quantities as people and scanners write them.

// The EAN-13 of a typed text, null if the text is not a code. Twelve digits (UPC-A) are the code that begins with 0.
export function code(typed) {
  const digits = typed.trim();
  return /^\d{12,13}$/.test(digits) ? digits.padStart(13, "0") : null;
}

export function isSound(ean13) {
  const sum = [...ean13.slice(0, 12)].reduce((total, digit, place) => total + Number(digit) * (place % 2 ? 3 : 1), 0);
  return (10 - (sum % 10)) % 10 === Number(ean13[12]);
}

const WRITTEN = /^-?(\d{1,40}([.,]\d{1,40})?|[.,]\d{1,40})$/;
const THOUSANDS = /^-?[1-9]\d{0,2},\d{3}$/;
const FOUR_PLACES = /\.\d{3}\d*[1-9]/;

// The quantity of a typed text, by the rule of pantry/domain/quantity.py. NaN for any other text, and if a comma may separate thousands.
export function quantity(typed) {
  const text = typed.trim();
  const number = text.replace(",", ".");
  const value = Number(number) || 0; // not -0
  const isOne = WRITTEN.test(text) && !THOUSANDS.test(text) && !FOUR_PLACES.test(number) && value >= 0 && value <= 9_999_999.999;
  return isOne ? value : Number.NaN;
}

export const amount = (value) => value.toLocaleString("en", { maximumFractionDigits: 3, useGrouping: false });
