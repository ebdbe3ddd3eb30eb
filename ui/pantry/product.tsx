// One product: its stock, booking in and out, its latest bookings; or the form for an unknown one.

import { useEffect, useRef, useState } from "preact/hooks";
import { useCell } from "../kit/data/cell";
import { read } from "../kit/data/http";
import { useKeys } from "../kit/page/keys";
import { useLoad } from "../kit/data/load";
import { Pill } from "../kit/parts/pill";
import { ErrorPanel, Skeleton } from "../kit/parts/states";
import { Ago } from "../kit/parts/time";
import { Codes } from "./barcodes";
import { activate, book, bookingText, open, undo } from "./actions";
import { amount, isSound, problemOf, quantityOf } from "./codes/codes";
import { Create } from "./create";
import { API } from "./data/live";
import { complain } from "./data/messages";
import { person, PERSON_LENGTH, setPerson } from "./data/person";
import { isLow, look, products, type Known } from "./data/products";
import { scans } from "./codes/scanner";
import { Edit } from "./screens/edit";
import { Pending } from "./waiting";
import type { Direction, Movement, Product } from "./data/types";

const LATELY = 6;

export function ProductPanel({ ean13 }: { ean13: string }) {
  const { byCode, read: isRead } = useCell(products);
  const known = byCode.get(ean13);
  const looked = useLoad(async () => (known || !isRead || !isSound(ean13) ? null : look(ean13)), [ean13, isRead]);
  const box = useRef<HTMLElement>(null);
  const heading = useRef<HTMLHeadingElement>(null);
  const before = useRef(document.activeElement);
  const title = known?.product.name ?? (isSound(ean13) ? "New product" : "No such barcode");
  useKeys([{ keys: "Escape", does: "close the product", run: () => open(null) }]);
  useEffect(() => heading.current?.focus(), [known === undefined]);
  useEffect(() => {
    document.title = `${title} · Pantry`;
  }, [title]);
  useEffect(
    () => () => {
      document.title = "Pantry";
      const opener = before.current;
      if (box.current?.contains(document.activeElement) && opener instanceof HTMLElement && opener.isConnected) opener.focus();
    },
    [],
  );
  const unknown = () => {
    if (!isSound(ean13)) return <p>{`${ean13} is not a code of 13 digits whose last one fits.`}</p>;
    if (looked.error) return <ErrorPanel error={looked.error} retry={looked.reload} />;
    return isRead && !looked.loading ? <Create ean13={ean13} /> : <Skeleton />;
  };
  return (
    <section class="panel product" aria-labelledby="product-title" ref={box}>
      <header>
        <h2 id="product-title" tabIndex={-1} ref={heading}>
          {title}
        </h2>
        <button type="button" class="icon" aria-label="Close the product" title="Close (Esc)" onClick={() => open(null)}>
          ✕
        </button>
      </header>
      {known ? <Details known={known} /> : unknown()}
    </section>
  );
}

function Details({ known: { product, position } }: { known: Known }) {
  return (
    <>
      <p class="stock">
        <strong class="figure">
          {amount(product.current_stock)} {product.unit}
        </strong>
        <Pending ean13={product.ean13} />
        {isLow(product) && <Pill state="low" />}
      </p>
      <p class="muted">
        <code>{product.ean13}</code>, low at {amount(product.min_stock)} {product.unit}
        {product.active ? "" : ", not kept any more"}
      </p>
      <Booking product={product} />
      {!product.active && (
        <button type="button" onClick={() => activate(product.ean13)}>
          Keep it again
        </button>
      )}
      <Edit product={product} />
      <Codes product={product} />
      <Lately product={product} position={position} />
    </>
  );
}

function Booking({ product }: { product: Product }) {
  const [typed, setTyped] = useState("1");
  const [note, setNote] = useState("");
  const name = useCell(person);
  const scan = useCell(scans);
  useEffect(() => setTyped("1"), [scan]);
  const quantity = quantityOf(typed);
  const step = (by: number) => setTyped(amount(Number.isNaN(quantity) ? 1 : Math.max(quantity + by, Math.min(quantity || 1, 1))));
  const move = (type: Direction) => {
    if (problemOf(typed)) return complain(new Error(problemOf(typed)));
    book(product.ean13, type, quantity, product, note);
    setNote("");
  };
  useKeys([
    { keys: "o", does: "book the quantity out", run: () => move("out") },
    { keys: "i", does: "book the quantity in", run: () => move("in") },
    { keys: "+", does: "one more", run: () => step(1) },
    { keys: "-", does: "one less", run: () => step(-1) },
  ]);
  const press = (event: KeyboardEvent) => {
    if (event.key !== "Escape") return;
    event.preventDefault(); // which would also close the product
    (event.currentTarget as HTMLElement).blur();
  };
  return (
    <>
      <label for="quantity">Quantity</label>
      <div class="line quantity">
        <button type="button" aria-label="Less" onClick={() => step(-1)}>
          −
        </button>
        <input
          id="quantity"
          inputmode="decimal"
          autocomplete="off"
          value={typed}
          aria-describedby="unit"
          aria-invalid={!(quantity > 0)}
          title={problemOf(typed)}
          onFocus={(event) => event.currentTarget.select()}
          onInput={(event) => setTyped(event.currentTarget.value)}
          onKeyDown={press}
        />
        <button type="button" aria-label="More" onClick={() => step(1)}>
          +
        </button>
        <span id="unit">{product.unit}</span>
      </div>
      <div class="line">
        <button type="button" class="primary big" onClick={() => move("out")}>
          Out
        </button>
        <button type="button" class="primary big" onClick={() => move("in")}>
          In
        </button>
      </div>
      <details>
        <summary>Note and name {name && <span class="muted">by {name}</span>}</summary>
        <div class="create">
          <label for="booking-note">Note of the next booking</label>
          <input id="booking-note" autocomplete="off" value={note} onInput={(event) => setNote(event.currentTarget.value)} />
          <label for="booking-person">Your name, on all bookings of this device</label>
          <input
            id="booking-person"
            autocomplete="off"
            maxLength={PERSON_LENGTH}
            value={name}
            onInput={(event) => setPerson(event.currentTarget.value)}
          />
        </div>
      </details>
    </>
  );
}

/** The latest movements, reloaded whenever the product has changed. */
function Lately({ product, position }: { product: Product; position: string }) {
  const { ean13 } = product;
  const { value, error, reload } = useLoad((signal) => read<Movement[]>(`${API}/products/${ean13}/movements?limit=${LATELY}`, signal), [ean13]);
  const seen = useRef(position);
  useEffect(() => {
    if (seen.current !== position) reload();
    seen.current = position;
  }, [position]);
  if (error) return <ErrorPanel error={error} retry={reload} />;
  if (!value?.length) return value ? <p class="muted">There are no movements yet.</p> : <Skeleton lines={2} />;
  return (
    <>
      <h3>Lately</h3>
      <ul class="lately">
        {value.map((movement) => (
          <li key={movement.id} class={movement.reversed_by ? "muted" : ""}>
            <span class="what">
              {movement.type} {amount(movement.quantity)} {movement.unit}
              <span class="muted">
                {" "}
                to {amount(movement.stock_after)}, <Ago at={movement.created_at} />
                {noteOf(movement)}
              </span>
            </span>
            {!movement.reversed_by && !movement.reverses && (
              <button type="button" aria-label={`Undo ${movement.type} ${amount(movement.quantity)} ${movement.unit}`} onClick={() => undo({ id: movement.id, ean13, text: bookingText(ean13, movement.type, movement.quantity, { ...product, unit: movement.unit }) })}>
                Undo
              </button>
            )}
          </li>
        ))}
      </ul>
    </>
  );
}

export function noteOf({ reversed_by, reverses, counted, created_by }: Movement): string {
  const notes = [created_by && `by ${created_by}`, counted !== undefined && "counted", reverses && "undoes another", reversed_by && "undone"];
  return notes
    .filter(Boolean)
    .map((note) => `, ${note}`)
    .join("");
}
