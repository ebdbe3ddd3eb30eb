// Changes that wait for the service, and changes that it refused, one by one, with the choices for each.

import { useState } from "preact/hooks";
import { useCell } from "../kit/data/cell";
import { Ago } from "../kit/parts/time";
import { bookingText, countText } from "./actions";
import { amount, problemOf, quantityOf } from "./codes/codes";
import { isDurable } from "./data/database";
import { remarks } from "./data/person";
import { again, drop, queue, type Change } from "./data/queue";
import type { Direction } from "./data/types";

interface Booking {
  product_ean13: string;
  type: Direction;
  quantity: number;
}

/** The booking that a change makes, null if it makes another change. */
export const bookingOf = ({ path, body }: Change): Booking | null => (path === "/movements" ? (body as Booking) : null);

export function Waiting() {
  const { waiting, refused, problem } = useCell(queue);
  const isKept = useCell(isDurable);
  const isShown = waiting.length > 0 && problem !== null;
  return (
    <>
      {isShown && (
        <section class="panel waiting" aria-label="Waiting changes">
          <p role="status">
            {waiting.length === 1 ? "1 change waits" : `${waiting.length} changes wait`} for the service and will be sent in this order. {problem}
            {!isKept && " This browser stores nothing: keep this page open until they are sent."}
          </p>
          <ul class="changes">
            {waiting.map((change) => (
              <li key={change.id}>
                <Told change={change} />
                {!change.sent && <Drop change={change} title="Take back" />}
              </li>
            ))}
          </ul>
        </section>
      )}
      <div role="alert">
        {refused.length > 0 && (
          <section class="panel refused" aria-label="Refused changes">
            <ul class="changes">
              {refused.map((change) => (
                <li key={change.id}>
                  <Told change={change} />
                  <Choices change={change} />
                </li>
              ))}
            </ul>
          </section>
        )}
      </div>
    </>
  );
}

function Told({ change }: { change: Change }) {
  return (
    <span>
      {change.text}
      <span class="muted">
        , <Ago at={new Date(change.at).toISOString()} />
      </span>
      {change.refusal !== null && <span class="bad">: {change.refusal}</span>}
    </span>
  );
}

function Drop({ change, title }: { change: Change; title: string }) {
  return (
    <button type="button" aria-label={`${title} ${change.text}`} onClick={() => void drop(change)}>
      {title}
    </button>
  );
}

/** A refused booking can be booked with another quantity, or counted instead; everything can be tried again or dismissed. */
function Choices({ change }: { change: Change }) {
  const booking = bookingOf(change);
  const [typed, setTyped] = useState(booking ? amount(booking.quantity) : "");
  const quantity = quantityOf(typed);
  const tryAgain = () => {
    if (!booking) return void again(change);
    const { product_ean13: ean13, type } = booking;
    if (quantity > 0) void again(change, change.path, { ...booking, quantity }, bookingText(ean13, type, quantity));
  };
  const countInstead = () => {
    if (!booking || Number.isNaN(quantity)) return;
    const ean13 = booking.product_ean13;
    void again(change, `/products/${ean13}/count`, { counted: quantity, ...remarks() }, countText(ean13, quantity));
  };
  return (
    <span class="choices">
      {booking && (
        <input
          inputmode="decimal"
          autocomplete="off"
          aria-label={`Quantity of ${change.text}`}
          value={typed}
          aria-invalid={Number.isNaN(quantity)}
          title={problemOf(typed)}
          onInput={(event) => setTyped(event.currentTarget.value)}
        />
      )}
      <button type="button" aria-label={`Try again ${change.text}`} disabled={booking !== null && !(quantity > 0)} onClick={tryAgain}>
        Try again
      </button>
      {booking && (
        <button type="button" aria-label={`Count instead of ${change.text}`} title="This quantity is there now" disabled={Number.isNaN(quantity)} onClick={countInstead}>
          Count instead
        </button>
      )}
      <Drop change={change} title="Dismiss" />
    </span>
  );
}

/** The bookings of a product that wait, as their sum: "(+2 waiting)". */
export function Pending({ ean13 }: { ean13: string }) {
  const { waiting, problem } = useCell(queue);
  if (problem === null) return null;
  const bookings = waiting.map(bookingOf).filter((booking) => booking?.product_ean13 === ean13);
  const sum = bookings.reduce((total, booking) => total + (booking?.type === "in" ? 1 : -1) * (booking?.quantity ?? 0), 0);
  return bookings.length ? (
    <span class="muted">
      ({sum > 0 ? "+" : ""}
      {amount(sum)} waiting)
    </span>
  ) : null;
}
