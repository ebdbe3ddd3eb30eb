// The known products. The state that is newer in the log wins, in any order of arrival.

const products = new Map();
const collator = new Intl.Collator(undefined, { sensitivity: "base", numeric: true });

export const product = (ean13) => products.get(ean13);

export function put(found, position) {
  const known = products.get(found.ean13);
  if (known && known.position > position) return known;
  const now = { ...known, ...found, position };
  products.set(found.ean13, now);
  return now;
}

// All that are kept, as they were at a position. One that is not among them any more was deactivated, unless it is newer.
export function putAll(found, position) {
  const there = new Set(found.map((one) => one.ean13));
  for (const [ean13, known] of products) {
    if (!there.has(ean13) && known.position <= position) products.delete(ean13);
  }
  for (const one of found) put(one, position);
}

export const isLow = (one) => one.current_stock <= one.min_stock;

// The kept products that match a typed text, low ones first.
export function matching(typed) {
  const wanted = typed.trim().toLowerCase();
  return [...products.values()]
    .filter((one) => one.active && (one.name.toLowerCase().includes(wanted) || one.ean13.startsWith(wanted)))
    .sort((a, b) => isLow(b) - isLow(a) || collator.compare(a.name, b.name) || (a.ean13 < b.ean13 ? -1 : 1));
}
