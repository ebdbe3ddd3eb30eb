// An unknown code: the form for its product.

import { useState } from "preact/hooks";
import { useQuery } from "../kit/page/router";
import { book, create, open } from "./actions";
import { AssignTo } from "./barcodes";
import { problemOf, quantityOf } from "./codes/codes";

/** The limits of pantry/domain/product.py. */
export const NAME_LENGTH = 200;
export const UNIT_LENGTH = 30;

const UNITS = ["piece", "kg", "g", "l", "pack"];

interface Draft {
  name: string;
  unit: string;
  least: string;
  first: string;
}

/** Half-filled forms by their codes: another scan does not throw them away. */
const drafts = new Map<string, Draft>();

export function Create({ ean13 }: { ean13: string }) {
  const [scan] = useQuery("scan");
  const [draft, setDraft] = useState<Draft>(drafts.get(ean13) ?? { name: "", unit: "", least: "1", first: scan === "in" ? "1" : "0" });
  const { name, unit, least, first } = draft;
  const set = (part: Partial<Draft>) => {
    drafts.set(ean13, { ...draft, ...part });
    setDraft({ ...draft, ...part });
  };
  const problem = problemOf(least) || problemOf(first);
  const isSound = !problem;
  const submit = (event: SubmitEvent) => {
    event.preventDefault();
    if (!isSound) return;
    create(ean13, { name: name.trim(), unit: unit.trim(), min_stock: quantityOf(least) });
    if (quantityOf(first) > 0) book(ean13, "in", quantityOf(first), { name: name.trim(), unit: unit.trim() });
    drafts.delete(ean13);
  };
  return (
    <>
      <form class="create" onSubmit={submit}>
      <p>
        There is no product with <code>{ean13}</code> yet.
      </p>
      <label for="new-name">Name</label>
      <input
        id="new-name"
        maxLength={NAME_LENGTH}
        required
        pattern=".*\S.*"
        autocomplete="off"
        value={name}
        onInput={(event) => set({ name: event.currentTarget.value })}
      />
      <label for="new-unit">Unit</label>
      <input
        id="new-unit"
        maxLength={UNIT_LENGTH}
        required
        pattern=".*\S.*"
        list="units"
        autocapitalize="none"
        autocomplete="off"
        value={unit}
        onInput={(event) => set({ unit: event.currentTarget.value })}
      />
      <datalist id="units">
        {UNITS.map((unit) => (
          <option key={unit} value={unit} />
        ))}
      </datalist>
      <label for="new-least">Low from this stock down</label>
      <input
        id="new-least"
        inputmode="decimal"
        autocomplete="off"
        value={least}
        aria-invalid={Number.isNaN(quantityOf(least))}
        aria-describedby="new-least-problem"
        onInput={(event) => set({ least: event.currentTarget.value })}
      />
      <label for="new-first">Comes in now</label>
      <input
        id="new-first"
        inputmode="decimal"
        autocomplete="off"
        value={first}
        aria-invalid={Number.isNaN(quantityOf(first))}
        aria-describedby="new-least-problem"
        onInput={(event) => set({ first: event.currentTarget.value })}
      />
      <p id="new-least-problem" class="bad" role="alert">
        {problem}
      </p>
      <div class="line">
        <button type="submit" class="primary big" disabled={!isSound}>
          Create
        </button>
        <button type="button" class="big" onClick={() => open(null)}>
          Cancel
        </button>
      </div>
    </form>
    <AssignTo code={ean13} />
    </>
  );
}
