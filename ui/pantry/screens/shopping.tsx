// The shopping list: low products with the quantity to buy. A tick books the quantity in.

import { useState } from "preact/hooks";
import { useCell } from "../../kit/data/cell";
import { read } from "../../kit/data/http";
import { useLoad } from "../../kit/data/load";
import { Empty, ErrorPanel, Skeleton } from "../../kit/parts/states";
import { book, undone } from "../actions";
import { amount, problemOf, quantityOf } from "../codes/codes";
import { API } from "../data/live";
import { products } from "../data/products";
import { isDone, queue, type Change } from "../data/queue";
import { bookingOf } from "../waiting";

interface ToBuy {
  ean13: string;
  name: string;
  unit: string;
  current_stock: number;
  min_stock: number;
  suggested: number;
}

/** The list, and the number of its reading: an item of another reading is another one. */
async function listed(signal: AbortSignal): Promise<{ reading: number; items: ToBuy[] }> {
  const items = await read<ToBuy[]>(`${API}/reports/shopping-list`, signal);
  return { reading: (readings += 1), items };
}

let readings = 0;

export function Shopping() {
  const { value, error, reload } = useLoad(listed, []);
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
      {value?.items.length === 0 && <Empty title="The shopping list is empty" />}
      <ul class="changes">
        {value?.items.map((item) => (
          <Item key={`${value.reading} ${item.ean13}`} item={item} />
        ))}
      </ul>
    </section>
  );
}

function Item({ item: { ean13, name, unit, suggested } }: { item: ToBuy }) {
  const stock = useCell(products).byCode.get(ean13)?.product.current_stock;
  const [typed, setTyped] = useState(amount(suggested));
  const [isSending, setSending] = useState(false);
  const [change, setChange] = useState<Change | null>(null);
  const { waiting } = useCell(queue);
  const isUndone = useCell(undone).has(change?.id ?? 0);
  const quantity = quantityOf(typed);
  const buy = async () => {
    setSending(true);
    setChange(await book(ean13, "in", quantity));
    setSending(false);
  };
  const isWaiting = isSending || waiting.some((each) => isPurchase(each, ean13));
  const isBooked = change !== null && isDone(change) && !isUndone;
  const isBought = isWaiting || isBooked;
  const state = isWaiting ? ", waits to be booked in" : isBooked ? ", booked in" : change && change.refusal !== null ? ", refused" : "";
  return (
    <li>
      <label class="line">
        <input type="checkbox" aria-label={`Bought ${name}`} checked={isBought} disabled={isBought || !(quantity > 0)} onChange={buy} />
        <span class={isBought ? "muted" : ""}>
          {name}{" "}
          <span class="muted">
            {stock === undefined ? "" : `${amount(stock)} ${unit} there`}
            {state}
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
          title={problemOf(typed)}
          onInput={(event) => setTyped(event.currentTarget.value)}
        />
        <span>{unit}</span>
      </span>
    </li>
  );
}

function isPurchase(change: Change, ean13: string): boolean {
  const booking = bookingOf(change);
  return booking?.product_ean13 === ean13 && booking.type === "in";
}
