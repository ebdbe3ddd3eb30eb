// The actions in the kitchen: take up a code, book, undo, create a product. Each change goes through the queue.

import { Cell } from "../kit/data/cell";
import { Problem, type Answer } from "../kit/data/http";
import { go, withQuery } from "../kit/page/router";
import { amount, codeOf, isSound } from "./codes";
import { complain, inOrder, say } from "./messages";
import { look, products, take } from "./products";
import { put, queue, type Change } from "./queue";
import type { Direction, Movement, Product } from "./types";

/** Movements that were booked on this page and can be undone, the latest last. */
export const booked = new Cell<readonly string[]>([]);

/** The result of a scanned code. */
export type Mode = "show" | Direction;

const UNDO = /^\/movements\/([^/]+)\/undo$/;
const NOT_SOUND = "its last digit does not fit";
const NO_CODE = "it has 8, 12 or 13 digits";

export const open = (ean13: string | null): void => go(withQuery({ product: ean13 }));

const named = (ean13: string): Partial<Product> => products.value.byCode.get(ean13)?.product ?? {};

export function book(ean13: string, type: Direction, quantity: number, product: Partial<Product> = named(ean13)): void {
  if (!(quantity > 0)) return complain(new Error("The quantity is a number above 0, with at most three decimal places."));
  const { name = ean13, unit = "" } = product;
  void put("/movements", { product_ean13: ean13, type, quantity }, `${name}: ${amount(quantity)} ${unit} ${type}`);
}

export function undo(id: string, text = "the last booking"): void {
  const path = `/movements/${id}/undo`;
  if (queue.value.waiting.some((change) => change.path === path)) return;
  booked.set(booked.value.filter((each) => each !== id));
  void put(path, {}, `undo: ${text}`);
}

export function create(ean13: string, product: Pick<Product, "name" | "unit" | "min_stock">): void {
  void put(`/products/${ean13}`, product, `${product.name}: new product ${ean13}`);
}

export function activate(ean13: string): void {
  void put(`/products/${ean13}/activate`, {}, `${named(ean13).name ?? ean13}: active again`);
}

/** Open what was scanned or typed, and book one if that is wanted. Without the service it is booked all the same. */
export function scanned(digits: string, mode: Mode): void {
  inOrder(async () => {
    const ean13 = codeOf(digits);
    if (!ean13 || !isSound(ean13)) throw new Error(`${digits} is not a barcode: ${ean13 ? NOT_SOUND : NO_CODE}.`);
    const isKnown = await isProduct(ean13, mode);
    open(ean13);
    if (mode === "show" || !isKnown) say("");
    else book(ean13, mode, 1);
  });
}

async function isProduct(ean13: string, mode: Mode): Promise<boolean> {
  if (products.value.byCode.has(ean13)) return true;
  try {
    return (await look(ean13)) !== null;
  } catch (error) {
    if (mode === "show" || !(error instanceof Problem) || error.status !== 0) throw error;
    return true; // not known without the service, which refuses the booking if there is no such product
  }
}

/** Show the answer to a change. */
export function settled(change: Change, answer: Answer<unknown> | Problem): void {
  const undone = UNDO.exec(change.path)?.[1];
  if (answer instanceof Problem) {
    if (undone && answer.status !== 409) booked.set([...booked.value, undone]); // 409: somebody else undid it
    return say("");
  }
  const { body, sequence } = answer;
  if (undone) moved(body as Movement, sequence, `${(body as Movement).type} again, undone`);
  else if (change.path === "/movements") {
    booked.set([...booked.value, (body as Movement).id]);
    moved(body as Movement, sequence, (body as Movement).type);
  } else {
    const product = body as Product;
    take(product, sequence);
    say(change.path.endsWith("/activate") ? `${product.name} is kept again` : `${product.name} is kept now`);
  }
}

function moved({ product_ean13: ean13, quantity, stock_after }: Movement, sequence: number, what: string): void {
  take({ ean13, current_stock: stock_after }, sequence);
  const { name = ean13, unit = "" } = named(ean13);
  say(`${name}: ${amount(quantity)} ${unit} ${what}, ${amount(stock_after)} ${unit} there now`);
}
