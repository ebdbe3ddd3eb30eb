// A barcode scanner types like a keyboard: a text, then Enter or Tab. Its keys are caught at any focus, in a field or not, also if
// the focus moves in between. That Enter then sends no form and presses no button, such as the one that booked the scan before.

import { useEffect, useRef } from "preact/hooks";
import { Cell } from "../../kit/data/cell";
import { pressed, scannedIn, textOf, type Press } from "./presses";

/** How often something was scanned: a field may have got digits that were not meant for it. */
export const scans = new Cell(0);

/** Remove a scanned text from the end of the field that has the focus: a half-filled form keeps only what somebody typed. */
function withoutScan(typed: string): void {
  const field = document.activeElement;
  if (!(field instanceof HTMLInputElement) || !typed || !field.value.endsWith(typed)) return;
  field.value = field.value.slice(0, -typed.length);
  field.dispatchEvent(new Event("input", { bubbles: true }));
}

export function useScanner(run: (text: string) => void): void {
  const latest = useRef(run);
  latest.current = run;
  useEffect(() => {
    let presses: readonly Press[] = [];
    const press = (event: KeyboardEvent) => {
      const { key } = event;
      if ((key !== "Enter" && key !== "Tab") || event.ctrlKey || event.metaKey) {
        presses = pressed(presses, event);
        return;
      }
      const scan = scannedIn(presses, key, event.timeStamp);
      presses = [];
      if (!scan) return;
      event.preventDefault();
      event.stopPropagation();
      withoutScan(scan.map(({ typed }) => typed).join(""));
      latest.current(textOf(scan));
      scans.set(scans.value + 1);
    };
    addEventListener("keydown", press, { capture: true });
    return () => removeEventListener("keydown", press, { capture: true });
  }, []);
}
