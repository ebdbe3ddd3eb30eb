// The shopping list: low products with the quantity to buy. A tick books the quantity in.

import { useState } from "preact/hooks";
import { useCell } from "../../kit/data/cell";
import { read } from "../../kit/data/http";
import { useLoad } from "../../kit/data/load";
import { Empty, ErrorPanel, Skeleton } from "../../kit/parts/states";
import { book } from "../actions";
import { amount, quantityOf } from "../codes/codes";
import { API } from "../data/live";
import { products } from "../data/products";

interface ToBuy {
  ean13: string;
  name: string;
  unit: string;
  current_stock: number;
  min_stock: number;
  suggested: number;
}

export function Shopping() {
  const { value, error, reload } = useLoad((signal) => read<ToBuy[]>(`${API}/reports/shopping-list`, signal), []);
  return (
    <section class="panel" aria-labelledby="shopping-title">
      <header class="line">
        <h2 id="shopping-title">Shopping list</h2>
        <button type="button" onClick={reload}>
          Read again
        </button>
      </header>
      {error ? <ErrorPanel error={error} retry={reload} /> : null}
      {!value && !error && <Skeleton />}
      {value?.length === 0 && <Empty title="The shopping list is empty" />}
      <ul class="changes">
        {value?.map((item) => (
          <Item key={`${item.ean13} ${item.suggested}`} item={item} />
        ))}
      </ul>
    </section>
  );
}

function Item({ item: { ean13, name, unit, suggested } }: { item: ToBuy }) {
  const stock = useCell(products).byCode.get(ean13)?.product.current_stock;
  const [typed, setTyped] = useState(amount(suggested));
  const [isBought, setBought] = useState(false);
  const quantity = quantityOf(typed);
  const buy = () => {
    setBought(true);
    book(ean13, "in", quantity);
  };
  return (
    <li>
      <label class="line">
        <input type="checkbox" aria-label={`Bought ${name}`} checked={isBought} disabled={isBought || !(quantity > 0)} onChange={buy} />
        <span class={isBought ? "muted" : ""}>
          {name}{" "}
          <span class="muted">
            {stock === undefined ? "" : `${amount(stock)} ${unit} there`}
            {isBought ? ", booked in" : ""}
          </span>
        </span>
      </label>
      <span class="choices">
        <input
          inputmode="decimal"
          autocomplete="off"
          aria-label={`Quantity of ${name}`}
          value={typed}
          disabled={isBought}
          aria-invalid={!(quantity > 0)}
          onInput={(event) => setTyped(event.currentTarget.value)}
        />
        <span>{unit}</span>
      </span>
    </li>
  );
}
