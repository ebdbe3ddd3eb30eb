// A barcode scanner types like a keyboard: a code, then Enter or Tab. Its keys are caught at any focus, in a field or not, also if
// the focus moves in between. That Enter then sends no form and presses no button, such as the one that booked the scan before.

import { useEffect, useRef } from "preact/hooks";
import { Cell } from "../../kit/data/cell";
import { meant, scannedIn, type Press } from "./presses";

/** How often something was scanned: a field may have got digits that were not meant for it. */
export const scans = new Cell(0);

/** Remove a code from the end of the field that has the focus: a half-filled form keeps only what somebody typed. */
function withoutCode(length: number, typed: string): void {
  const field = document.activeElement;
  if (!(field instanceof HTMLInputElement) || !field.value.endsWith(typed.slice(-length))) return;
  field.value = field.value.slice(0, -length);
  field.dispatchEvent(new Event("input", { bubbles: true }));
}

export function useScanner(run: (code: string) => void): void {
  const latest = useRef(run);
  latest.current = run;
  useEffect(() => {
    let presses: Press[] = [];
    let typed = "";
    const press = (event: KeyboardEvent) => {
      if (event.ctrlKey || event.metaKey) return;
      const at = event.timeStamp;
      const { key } = event;
      if (key === "Enter" || key === "Tab") {
        const code = scannedIn(presses, key, at);
        if (code) {
          event.preventDefault();
          event.stopPropagation();
          withoutCode(code.length, typed);
          latest.current(code);
          scans.set(scans.value + 1);
        }
        presses = [];
        typed = "";
        return;
      }
      const text = meant(event);
      if (!text) {
        if (key.length > 1 && key !== "Shift") presses = [];
        return;
      }
      presses = [...presses.slice(-99), { text, at }];
      typed = (typed + key).slice(-100);
    };
    addEventListener("keydown", press, { capture: true });
    return () => removeEventListener("keydown", press, { capture: true });
  }, []);
}
