// The actions in the kitchen: take up a code, book, undo, create a product. Each change goes through the queue.

import { Cell } from "../kit/data/cell";
import { Problem, type Answer } from "../kit/data/http";
import { go, withQuery } from "../kit/page/router";
import { amount, codeOf, isSound, itemOf } from "./codes/codes";
import { barcodes, complete } from "./data/barcodes";
import { complain, inOrder, say } from "./data/messages";
import { remarks } from "./data/person";
import { look, products, take, takePart } from "./data/products";
import { put, queue, type Change } from "./data/queue";
import type { Barcode, Direction, Movement, Product } from "./data/types";

/** A movement that was booked on this page and can be undone, in words: "Flour: 1 kg out". */
export interface Booked {
  id: string;
  ean13: string;
  text: string;
  /** The id of the change that booked it, if that was made here. */
  change?: number;
}

/** The movements that can be undone, the latest last. */
export const booked = new Cell<readonly Booked[]>([]);

/** The ids of the changes whose movements were undone on this page. */
export const undone = new Cell<ReadonlySet<number>>(new Set());

/** The result of a scanned code. */
export type Mode = "show" | Direction;

const UNDO = /^\/movements\/([^/]+)\/undo$/;
const NOT_SOUND = "its last digit does not fit";
const NO_CODE = "one has 8, 12, 13 or 14 digits, or begins with an item (01) of GS1";
const PACK_DIGITS = 14;
const undoing = new Map<string, Booked>();

export const open = (ean13: string | null): void => go(withQuery({ product: ean13, pack: null }));

const named = (ean13: string): Partial<Product> => products.value.byCode.get(ean13)?.product ?? {};

/** Book a quantity. Return the change when it is kept, and null for a wrong quantity. */
export async function book(ean13: string, type: Direction, quantity: number, product: Partial<Product> = named(ean13), note = ""): Promise<Change | null> {
  if (!(quantity > 0)) {
    complain(new Error("The quantity is a number above 0, with at most three decimal places."));
    return null;
  }
  return put(ean13, "/movements", { product_ean13: ean13, type, quantity, ...unitOf(product), ...remarks(note) }, bookingText(ean13, type, quantity, product));
}

/** The unit that the user sees: a booking that waits is refused if the product has another one by then. */
function unitOf({ unit }: Partial<Product>): { unit?: string } {
  return unit ? { unit } : {};
}

export function bookingText(ean13: string, type: Direction, quantity: number, product: Partial<Product> = named(ean13)): string {
  const { name = ean13, unit = "" } = product;
  return `${name}: ${amount(quantity)} ${unit} ${type}`;
}

export function count(ean13: string, counted: number): void {
  void put(ean13, `/products/${ean13}/count`, { counted, ...unitOf(named(ean13)), ...remarks() }, countText(ean13, counted));
}

export function countText(ean13: string, counted: number): string {
  const { name = ean13, unit = "" } = named(ean13);
  return `${name}: ${amount(counted)} ${unit} counted`;
}

export function undo(movement: Booked): void {
  const path = `/movements/${movement.id}/undo`;
  if (queue.value.waiting.some((change) => change.path === path)) return;
  undoing.set(movement.id, booked.value.find(({ id }) => id === movement.id) ?? movement);
  booked.set(booked.value.filter(({ id }) => id !== movement.id));
  void put(movement.ean13, path, {}, `undo: ${movement.text}`);
}

export function create(ean13: string, product: Pick<Product, "name" | "unit" | "min_stock">): void {
  void put(ean13, `/products/${ean13}`, product, `${product.name}: new product ${ean13}`);
}

export function activate(ean13: string): void {
  void put(ean13, `/products/${ean13}/activate`, {}, `${named(ean13).name ?? ean13}: active again`);
}

const isKnown = (code: string): boolean => products.value.byCode.has(code) || barcodes.value.has(code);

const notTold = (text: string): Error => new Error(`It is not known what ${text} names: the codes could not be read.`);

interface Found {
  /** Empty for a text without a code. */
  code: string;
  /** The product of a code that is not the key of a product. */
  barcode: Barcode | undefined;
  /** Whether its product is certain: a text without a sound code has none, and other ones are known here, or all codes are. */
  isTold: boolean;
}

async function found(text: string): Promise<Found> {
  const first = codeOf(text, isKnown) ?? "";
  const isTold = !isSound(first) || isKnown(first) || (await complete());
  const code = codeOf(text, isKnown) ?? "";
  return { code, barcode: products.value.byCode.has(code) ? undefined : barcodes.value.get(code), isTold };
}

/** A scan during a stocktake counts what its code stands for. */
export function scannedInStocktake(text: string, counted: (ean13: string, factor: number) => void): void {
  inOrder(async () => {
    const { code, barcode, isTold } = await found(text);
    const ean13 = barcode?.product_ean13 ?? code;
    if (!products.value.byCode.has(ean13)) throw isTold ? new Error(`${text} names no product that is kept.`) : notTold(text);
    counted(ean13, barcode?.factor ?? 1);
    say(`${named(ean13).name}: one more counted`);
  });
}

/** Open what was scanned or typed, and book what its code stands for if that is wanted, also without the service. */
export function scanned(text: string, mode: Mode): void {
  inOrder(async () => {
    const { code, barcode, isTold } = await found(text);
    if (!isSound(code)) throw new Error(`${text} is not a barcode: ${code ? NOT_SOUND : NO_CODE}.`);
    const isUnknownPack = isPack(code) && !barcode;
    const ean13 = barcode?.product_ean13 ?? (isUnknownPack ? itemOf(code) : code);
    const isProduct = barcode !== undefined || (await names(ean13, mode));
    if (!isTold && (isUnknownPack || !isProduct)) throw notTold(text);
    go(withQuery({ product: ean13, pack: isUnknownPack ? code : null }));
    if (mode === "show" || !isProduct || isUnknownPack) say("");
    else book(ean13, mode, barcode?.factor ?? 1);
  });
}

const isPack = (code: string): boolean => code.length === PACK_DIGITS;

/** Whether a code is the key of a product. */
async function names(ean13: string, mode: Mode): Promise<boolean> {
  if (products.value.byCode.has(ean13)) return true;
  try {
    return (await look(ean13)) !== null;
  } catch (error) {
    if (mode === "show" || !(error instanceof Problem) || error.status !== 0) throw error;
    return true; // not known without the service, which refuses the booking if there is no such product
  }
}

interface Counted {
  ean13: string;
  difference: number;
  current_stock: number;
  movement?: Movement;
}

/** Show the answer to a change. */
export function settled(change: Change, answer: Answer<unknown> | Problem): void {
  const reverses = UNDO.exec(change.path)?.[1];
  const movement = reverses ? undoing.get(reverses) : undefined;
  if (answer instanceof Problem) {
    if (movement && answer.status !== 409) canUndo(movement); // 409: somebody else undid it
    return say("");
  }
  const { body, sequence } = answer;
  if (movement?.change) undone.set(new Set([...undone.value, movement.change]));
  if (reverses) return moved(body as Movement, sequence, `${(body as Movement).type} again, undone`);
  if (change.path === "/movements") {
    const { id, product_ean13: ean13, type } = body as Movement;
    canUndo({ id, ean13, text: change.text, change: change.id });
    return moved(body as Movement, sequence, type);
  }
  if (change.path.endsWith("/count")) return counted(body as Counted, sequence, change.text);
  const product = body as Product;
  take(product, sequence);
  say(change.path.endsWith("/activate") ? `${product.name} is kept again` : `${product.name} is kept now`);
}

function canUndo(movement: Booked): void {
  booked.set([...booked.value.filter(({ id }) => id !== movement.id), movement]);
}

function counted({ ean13, difference, current_stock, movement }: Counted, sequence: number, text: string): void {
  takePart({ ean13, current_stock }, sequence);
  if (movement) canUndo({ id: movement.id, ean13, text });
  const { unit = "" } = named(ean13);
  say(`${text}, ${difference ? `${difference > 0 ? "+" : ""}${amount(difference)} ${unit} booked` : "as the books have it"}`);
}

function moved({ product_ean13: ean13, quantity, stock_after, unit }: Movement, sequence: number, what: string): void {
  takePart({ ean13, current_stock: stock_after }, sequence);
  const { name = ean13 } = named(ean13);
  say(`${name}: ${amount(quantity)} ${unit} ${what}, ${amount(stock_after)} ${unit} there now`);
}
