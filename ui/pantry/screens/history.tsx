// The bookings, and the stock as it was at any time.

import { useEffect, useState } from "preact/hooks";
import { read, readPages } from "../../kit/data/http";
import { useLoad } from "../../kit/data/load";
import { useCell } from "../../kit/data/cell";
import { useQuery } from "../../kit/page/router";
import { Empty, ErrorPanel, Skeleton } from "../../kit/parts/states";
import { amount } from "../codes/codes";
import { API, stream } from "../data/live";
import { products } from "../data/products";
import type { Movement, Product } from "../data/types";
import { noteOf } from "../product";

const MOST = 200;
const TIME = new Intl.DateTimeFormat(undefined, { dateStyle: "short", timeStyle: "medium" });

export function History() {
  const [at, setAt] = useQuery("at");
  const [of, setOf] = useQuery("of");
  const { byCode, order } = useCell(products);
  return (
    <section class="panel" aria-labelledby="history-title">
      <h2 id="history-title">History</h2>
      <div class="line wrap">
        <label for="history-of">Product</label>
        <select id="history-of" value={of} onChange={(event) => setOf(event.currentTarget.value)}>
          <option value="">All</option>
          {order.map((ean13) => (
            <option key={ean13} value={ean13}>
              {byCode.get(ean13)?.product.name}
            </option>
          ))}
        </select>
        <label for="history-at">As it was at</label>
        <input id="history-at" type="datetime-local" value={at} onInput={(event) => setAt(event.currentTarget.value, { replace: true })} />
      </div>
      {isTime(at) ? (
        <>
          {at && <Past at={at} of={of} />}
          <Movements at={at} of={of} />
        </>
      ) : (
        <p class="bad" role="alert">
          This is not a time: a year has four digits.
        </p>
      )}
    </section>
  );
}

/** Whether a text is the content of the field: its year may have six digits, and the text may come from an address. */
const isTime = (at: string): boolean => at === "" || !Number.isNaN(Date.parse(at));

/** The time of the field is local. */
const instant = (at: string): string => encodeURIComponent(new Date(at).toISOString());

/** The products of a time, or the one with the code `of`. */
async function stockThen(at: string, of: string, signal: AbortSignal): Promise<Product[]> {
  const found: Product[] = [];
  const path = `${API}/products?as_of=${instant(at)}${of && `&search=${of}`}`;
  await readPages<Product>(path, (page) => found.push(...page), { signal });
  return of ? found.filter(({ ean13 }) => ean13 === of) : found;
}

function Past({ at, of }: { at: string; of: string }) {
  const { value: shown, error, reload } = useLoad((signal) => stockThen(at, of, signal), [at, of]);
  if (error) return <ErrorPanel error={error} retry={reload} />;
  if (!shown) return <Skeleton />;
  if (!shown.length) return <Empty title={of ? "There was no such product at that time" : "There were no products at that time"} />;
  return (
    <>
      <h3>Stock then</h3>
      <ul class="changes" aria-label="Stock then">
        {shown.map(({ ean13, name, current_stock, unit }) => (
          <li key={ean13}>
            <span>{name}</span>
            <span class="number">
              {amount(current_stock)} {unit}
            </span>
          </li>
        ))}
      </ul>
    </>
  );
}

/** Read again after each booking, and if bookings may have been missed; one reading after the other. */
function useAfterBookings(reload: () => void, loading: boolean): void {
  const [isOutdated, setOutdated] = useState(false);
  useEffect(() => stream.onAny(({ name }) => name === "stock", () => setOutdated(true)), []);
  useEffect(() => {
    if (!isOutdated || loading) return;
    setOutdated(false);
    reload();
  }, [isOutdated, loading]);
}

function Movements({ at, of }: { at: string; of: string }) {
  const query = [`limit=${MOST}`, of && `ean13=${of}`, at && `to=${instant(at)}`].filter(Boolean).join("&");
  const { value, error, loading, reload } = useLoad((signal) => read<Movement[]>(`${API}/movements?${query}`, signal), [query]);
  useAfterBookings(reload, loading);
  const { byCode } = useCell(products);
  if (error) return <ErrorPanel error={error} retry={reload} />;
  if (!value) return <Skeleton />;
  if (!value.length) return <Empty title="Nothing was booked" />;
  return (
    <>
      <h3>{at ? "Bookings until then" : "Bookings"}</h3>
      <ul class="changes" aria-label="Bookings">
        {value.map((movement) => {
          const product = byCode.get(movement.product_ean13)?.product;
          return (
            <li key={movement.id} class={movement.reversed_by ? "muted" : ""}>
              <span>
                {product?.name ?? movement.product_ean13}: {movement.type} {amount(movement.quantity)} {movement.unit}
                <span class="muted">
                  {" "}
                  to {amount(movement.stock_after)}, {TIME.format(new Date(movement.created_at))}
                  {noteOf(movement)}
                  {movement.notes ? `: ${movement.notes}` : ""}
                </span>
              </span>
            </li>
          );
        })}
      </ul>
      {value.length === MOST && <p class="muted">The newest {MOST} are shown.</p>}
    </>
  );
}
