// What one does in the kitchen: take up a code, book, undo, keep a product.

import { Cell } from "../kit/cell";
import { Problem } from "../kit/http";
import { go, withQuery } from "../kit/router";
import { change, complain, inOrder, perform, say } from "./changes";
import { amount, codeOf, isSound } from "./codes";
import { look, products, take } from "./products";
import type { Direction, Movement, Product } from "./types";

/** Movements that were booked on this page and can be undone, the latest last. */
export const booked = new Cell<readonly string[]>([]);

/** What becomes of a code that is scanned. */
export type Mode = "show" | Direction;

export const open = (ean13: string | null): void => go(withQuery({ product: ean13 }));

export function book(ean13: string, type: Direction, quantity: number): void {
  if (!(quantity > 0)) return complain(new Error("The quantity is a number above 0, with at most three decimal places."));
  const make = change<Movement>("/movements", { product_ean13: ean13, type, quantity });
  inOrder(() =>
    perform(make, ({ body, sequence }) => {
      booked.set([...booked.value, body.id]);
      moved(body, sequence, type);
    }),
  );
}

export function undo(id: string): void {
  const make = change<Movement>(`/movements/${id}/undo`);
  const settle = () => booked.set(booked.value.filter((each) => each !== id));
  inOrder(async () => {
    try {
      await perform(make, ({ body, sequence }) => {
        settle();
        moved(body, sequence, `${body.type} again, undone`);
      });
    } catch (error) {
      if (error instanceof Problem && error.status === 409) settle(); // somebody else undid it
      throw error;
    }
  });
}

function moved({ product_ean13: ean13, quantity, stock_after }: Movement, sequence: number, what: string): void {
  take({ ean13, current_stock: stock_after }, sequence);
  const { name = ean13, unit = "" } = products.value.byCode.get(ean13)?.product ?? {};
  say(`${name}: ${amount(quantity)} ${unit} ${what}, ${amount(stock_after)} ${unit} there now`);
}

/** Open what was scanned or typed, and book one where that is wanted. */
export function scanned(digits: string, mode: Mode): void {
  inOrder(async () => {
    const ean13 = codeOf(digits);
    if (!ean13 || !isSound(ean13)) throw new Error(`${digits} is not a barcode: ${ean13 ? "its last digit does not fit" : "it has 12 or 13 digits"}.`);
    const known = products.value.byCode.get(ean13)?.product ?? (await look(ean13));
    open(ean13);
    if (mode === "show" || !known) say("");
    else book(ean13, mode, 1);
  });
}

export function create(ean13: string, product: Pick<Product, "name" | "unit" | "min_stock">): void {
  const make = change<Product>(`/products/${ean13}`, product);
  inOrder(() =>
    perform(make, ({ body, sequence }) => {
      take(body, sequence);
      say(`${body.name} is kept now`);
    }),
  );
}

export function activate(ean13: string): void {
  const make = change<Product>(`/products/${ean13}/activate`);
  inOrder(() =>
    perform(make, ({ body, sequence }) => {
      take(body, sequence);
      say(`${body.name} is kept again`);
    }),
  );
}
