// A barcode scanner types like a keyboard: digits, then Enter. They are caught wherever one is, in a field or not, and although the
// focus moves meanwhile; that Enter then sends no form and presses no button, such as the one that booked what was scanned before.

import { useEffect, useRef } from "preact/hooks";
import { Cell } from "../kit/cell";

const PATIENCE = 3_000;
const LEAST = 12;

/** How often something was scanned: a field may have got digits that were not meant for it. */
export const scans = new Cell(0);

export function useScanner(run: (digits: string) => void): void {
  const latest = useRef(run);
  latest.current = run;
  useEffect(() => {
    let digits = "";
    let at = 0;
    const press = (event: KeyboardEvent) => {
      if (event.timeStamp - at > PATIENCE) digits = "";
      at = event.timeStamp;
      if (event.key === "Enter" && digits.length >= LEAST) {
        event.preventDefault();
        event.stopPropagation();
        latest.current(digits);
        digits = "";
        scans.set(scans.value + 1);
      } else if (event.key !== "Shift") {
        digits = /^\d$/.test(event.key) ? digits + event.key : "";
      }
    };
    addEventListener("keydown", press, { capture: true });
    return () => removeEventListener("keydown", press, { capture: true });
  }, []);
}
