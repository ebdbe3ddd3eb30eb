// The products as they are known here: read once, kept up to date by the events. The newer value in the log wins, in any order.

import { Cell } from "../../kit/data/cell";
import { ask } from "../../kit/data/http";
import type { Live } from "../../kit/data/live";
import { compare } from "../../kit/data/positions";
import { rereading } from "../../kit/data/reread";
import { KEPT_HERE, stored, write } from "./database";
import { API, stream } from "./live";
import type { Product } from "./types";

export interface Known {
  product: Product;
  /** The position of the log that the product is known from. */
  position: string;
  /** When it changed before somebody's eyes, in milliseconds; 0 if it did not. */
  changed: number;
}

/** Some values of a product. */
type Part = Partial<Product> & { ean13: string };

export interface Products {
  byCode: ReadonlyMap<string, Known>;
  /** Codes of active products, low ones first, then by name. */
  order: readonly string[];
  read: boolean;
  error: unknown;
}

const byCode = new Map<string, Known>();
const collator = new Intl.Collator(undefined, { sensitivity: "base", numeric: true });
let order: string[] = [];
let isSorted = true;

export const products = new Cell<Products>({ byCode, order, read: false, error: null });

export const isLow = ({ current_stock, min_stock }: Product): boolean => current_stock <= min_stock;

const SAVE_AFTER = 500;
let saving = 0;

/** Begin to follow. Until the service answers, the products are the ones that this browser has kept. */
export async function startProducts(): Promise<void> {
  stream.listen(apply);
  stream.onResync(() => void refresh());
  const kept = (await stored<{ id: string; products?: Product[] }>("known")).find(({ id }) => id === "products");
  if (!kept?.products || products.value.read) return;
  for (const product of kept.products) if (!byCode.has(product.ean13)) put(product, KEPT_HERE);
  publish({ read: true });
}

function save(): void {
  saving ||= window.setTimeout(() => {
    saving = 0;
    void write("known", { put: { id: "products", products: [...byCode.values()].map(({ product }) => product) } });
  }, SAVE_AFTER);
}

/** Read all products that are kept again. One that is not among them any more was deactivated, unless it is newer. */
export const refresh = rereading<Product>({
  stream,
  path: `${API}/products?active=true`,
  idOf: ({ ean13 }) => ean13,
  forget: () => byCode.forEach((known, ean13) => byCode.set(ean13, { ...known, position: KEPT_HERE })),
  put: (product, sequence) => put(product, String(sequence)),
  leave: (found, sequence) => {
    for (const ean13 of byCode.keys()) if (!found.has(ean13)) change({ ean13, active: false }, String(sequence));
  },
  publish,
});

/** Ask for one product, kept or not. */
export async function look(ean13: string): Promise<Product | null> {
  const { body, sequence } = await ask<Product[]>("GET", `${API}/products?search=${ean13}`);
  const found = body.find((product) => product.ean13 === ean13);
  if (!found) return null;
  take(found, sequence);
  return found;
}

/** Take over a product of an answer. */
export function take(product: Product, sequence: number): void {
  put(product, String(sequence), Date.now());
  publish({});
}

/** Take over some values of a product from an answer. */
export function takePart(part: Part, sequence: number): void {
  change(part, String(sequence), Date.now());
  publish({});
}

/** Change some values: the others stay. A product that is not known here is read as a whole. */
function change(part: Part, position: string, changed = 0): void {
  const known = byCode.get(part.ean13);
  if (known) put({ ...known.product, ...part }, position, changed);
  else void look(part.ean13).catch(() => {}); // it is not shown until it is known
}

/** Put a whole product in place of the known one: an answer omits empty values. */
function put(product: Product, position: string, changed = 0): void {
  const known = byCode.get(product.ean13);
  if (known && compare(known.position, position) > 0) return;
  const before = known?.product;
  isSorted &&= before !== undefined && before.active === product.active && before.name === product.name && isLow(before) === isLow(product);
  byCode.set(product.ean13, { product, position, changed });
}

function apply(events: readonly Live[]): void {
  for (const { id, name, data } of events) {
    if (name === "product") put(data as Product, id, Date.now());
    if (name !== "stock") continue;
    const { movement, is_low_stock, ...part } = data as Part & { movement: unknown; is_low_stock: boolean };
    change(part, id, Date.now());
  }
  publish({});
}

function publish(change: Partial<Products>): void {
  if (!isSorted) {
    const kept = [...byCode.values()].map(({ product }) => product).filter(({ active }) => active);
    kept.sort((a, b) => Number(isLow(b)) - Number(isLow(a)) || collator.compare(a.name, b.name) || (a.ean13 < b.ean13 ? -1 : 1));
    order = kept.map(({ ean13 }) => ean13);
    isSorted = true;
  }
  products.set({ ...products.value, ...change, order });
  if (products.value.read) save();
}
