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

// The quantity of a typed text, with a comma or a point. NaN if it is not a number, or has more than three places.
export function quantity(typed) {
  const text = typed.trim().replace(",", ".");
  return /^\d{1,7}(\.\d{1,3})?$/.test(text) ? Number(text) : Number.NaN;
}

export const amount = (value) => value.toLocaleString("en", { maximumFractionDigits: 3, useGrouping: false });
