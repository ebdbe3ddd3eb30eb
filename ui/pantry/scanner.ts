// A barcode scanner types like a keyboard: digits, then Enter. They are caught at any focus, in a field or not, also if the
// focus moves in between. That Enter then sends no form and presses no button, such as the one that booked the scan before.

import { useEffect, useRef } from "preact/hooks";
import { Cell } from "../kit/data/cell";
import { codeOf } from "./codes";

const PATIENCE = 3_000;
const LEAST = 12;
/** Digits, after an AIM identifier of the scanner. */
const CODE = /^(\]([A-Za-z]\d*)?|\d+)$/;

/** How often something was scanned: a field may have got digits that were not meant for it. */
export const scans = new Cell(0);

/** Remove a code from the end of the field that has the focus: a half-filled form keeps only what somebody typed. */
function withoutCode(digits: string): void {
  const field = document.activeElement;
  if (!(field instanceof HTMLInputElement) || !field.value.endsWith(digits)) return;
  field.value = field.value.slice(0, -digits.length);
  field.dispatchEvent(new Event("input", { bubbles: true }));
}

export function useScanner(run: (digits: string) => void): void {
  const latest = useRef(run);
  latest.current = run;
  useEffect(() => {
    let digits = "";
    let at = 0;
    const press = (event: KeyboardEvent) => {
      if (event.timeStamp - at > PATIENCE) digits = "";
      at = event.timeStamp;
      if (event.key === "Enter" && (codeOf(digits) || digits.length >= LEAST)) {
        event.preventDefault();
        event.stopPropagation();
        withoutCode(digits);
        latest.current(digits);
        digits = "";
        scans.set(scans.value + 1);
      } else if (event.key !== "Shift") {
        digits = [digits + event.key, event.key].find((text) => CODE.test(text)) ?? "";
      }
    };
    addEventListener("keydown", press, { capture: true });
    return () => removeEventListener("keydown", press, { capture: true });
  }, []);
}
