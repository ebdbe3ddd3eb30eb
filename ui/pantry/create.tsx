// A code that nothing is known of: what it stands for.

import { useState } from "preact/hooks";
import { create, open } from "./actions";
import { quantityOf } from "./codes";

/** Limits of the specification (pantry/domain/product.py). */
const NAME_LENGTH = 200;
const UNIT_LENGTH = 30;

const UNITS = ["piece", "kg", "g", "l", "pack"];

export function Create({ ean13 }: { ean13: string }) {
  const [least, setLeast] = useState("1");
  const isSound = !Number.isNaN(quantityOf(least));
  const submit = (event: SubmitEvent) => {
    event.preventDefault();
    const form = new FormData(event.currentTarget as HTMLFormElement);
    if (isSound) create(ean13, { name: String(form.get("name")).trim(), unit: String(form.get("unit")).trim(), min_stock: quantityOf(least) });
  };
  return (
    <form class="create" onSubmit={submit}>
      <p>
        Nothing is known of <code>{ean13}</code> yet.
      </p>
      <label for="new-name">Name</label>
      <input id="new-name" name="name" maxLength={NAME_LENGTH} required pattern=".*\S.*" autocomplete="off" />
      <label for="new-unit">Unit</label>
      <input id="new-unit" name="unit" maxLength={UNIT_LENGTH} required pattern=".*\S.*" list="units" autocapitalize="none" autocomplete="off" />
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
        aria-invalid={!isSound}
        aria-describedby="new-least-problem"
        onInput={(event) => setLeast(event.currentTarget.value)}
      />
      <p id="new-least-problem" class="bad" role="alert">
        {isSound ? "" : "This is a number with at most three decimal places."}
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
  );
}
