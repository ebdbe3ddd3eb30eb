// The codes that name products, apart from the keys of the products: read once, kept in this browser, kept up to date by the events.

import { Cell } from "../../kit/data/cell";
import { ask } from "../../kit/data/http";
import type { Live } from "../../kit/data/live";
import { compare } from "../../kit/data/positions";
import { rereading } from "../../kit/data/reread";
import { KEPT_HERE, stored, write } from "./database";
import { API, stream } from "./live";
import type { Barcode } from "./types";

interface Named extends Barcode {
  /** The position of the log that it is known from. */
  position: string;
}

const named = new Map<string, Named>();
const free = new Map<string, string>();

/** Whether all codes were read, and the last reading did not fail. */
let isWhole = false;

export const barcodes = new Cell<ReadonlyMap<string, Barcode>>(named);

export async function startBarcodes(): Promise<void> {
  stream.listen(apply);
  stream.onResync(() => void refresh());
  const kept = (await stored<{ id: string; codes?: Barcode[] }>("known")).find(({ id }) => id === "codes");
  for (const barcode of kept?.codes ?? []) if (!named.has(barcode.code)) named.set(barcode.code, { ...barcode, position: KEPT_HERE });
  barcodes.tell();
}

const refresh = rereading<Barcode>({
  stream,
  path: `${API}/codes`,
  idOf: ({ code }) => code,
  forget: () => {
    named.forEach((known, code) => named.set(code, { ...known, position: KEPT_HERE }));
    free.clear();
  },
  put: (barcode, sequence) => put(barcode, String(sequence)),
  leave: (found, sequence) => {
    for (const code of named.keys()) if (!found.has(code)) remove(code, String(sequence));
    isWhole = true;
  },
  publish: ({ error }) => {
    if (error) isWhole = false;
    publish();
  },
});

/** Read the codes if some may be missing here. Return whether all are known then. */
export async function complete(): Promise<boolean> {
  if (!isWhole) await refresh();
  return isWhole;
}

/** Let a code name a product. Raises Problem. */
export async function assign(code: string, product_ean13: string, factor: number): Promise<void> {
  const { body, sequence } = await ask<Barcode>("PUT", `${API}/codes/${code}`, { body: { product_ean13, factor } });
  put(body, String(sequence));
  publish();
}

/** Free a code. Raises Problem. */
export async function release(code: string): Promise<void> {
  const { sequence } = await ask<unknown>("DELETE", `${API}/codes/${code}`);
  remove(code, String(sequence));
  publish();
}

function put(barcode: Barcode, position: string): void {
  const known = named.get(barcode.code)?.position ?? free.get(barcode.code);
  if (known && compare(known, position) > 0) return;
  free.delete(barcode.code);
  named.set(barcode.code, { ...barcode, position });
}

function remove(code: string, position: string): void {
  const known = named.get(code)?.position;
  if (known && compare(known, position) > 0) return;
  named.delete(code);
  free.set(code, position);
}

function apply(events: readonly Live[]): void {
  const changes = events.filter(({ name }) => name === "code");
  for (const { id, data } of changes) {
    const { product_ean13, ...barcode } = data as Omit<Barcode, "product_ean13"> & { product_ean13: string | null };
    if (product_ean13) put({ ...barcode, product_ean13 }, id);
    else remove(barcode.code, id);
  }
  if (changes.length) publish();
}

function publish(): void {
  barcodes.tell();
  const codes = [...named.values()].map(({ code, product_ean13, factor }) => ({ code, product_ean13, factor }));
  void write("known", { put: { id: "codes", codes } });
}
