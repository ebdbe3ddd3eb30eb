// The person who books on this device: her name goes with each booking. It stays on the device.

import { Cell } from "../../kit/data/cell";

const KEPT = "pantry-person";

/** The limit of pantry/domain/product.py. */
export const PERSON_LENGTH = 100;

export const person = new Cell(read());

function read(): string {
  try {
    return localStorage.getItem(KEPT) ?? "";
  } catch {
    return "";
  }
}

export function setPerson(name: string): void {
  person.set(name);
  try {
    localStorage.setItem(KEPT, name);
  } catch {
    // this browser stores nothing: the name is known until the page is closed
  }
}

/** The remarks of a booking: nothing that is empty. */
export function remarks(note = ""): { created_by?: string; notes?: string } {
  const name = person.value.trim();
  return { ...(name ? { created_by: name } : {}), ...(note.trim() ? { notes: note.trim() } : {}) };
}
