// A stocktake as a walk through the shelf: scan or type what is there, stop and resume later, and book the differences at the end.

import { useCell, Cell } from "../../kit/data/cell";
import { keep, kept } from "../../kit/data/kept";
import { Empty } from "../../kit/parts/states";
import { useQuery } from "../../kit/page/router";
import { count } from "../actions";
import { amount, problemOf, quantityOf } from "../codes/codes";
import { products, type Known } from "../data/products";

const KEPT = "pantry-stocktake";

/** The counts so far, as typed, by the codes of the products. It stays in this browser until it is booked. */
const counted = new Cell(read());

function read(): Readonly<Record<string, string>> {
  return kept(KEPT, {});
}

function replace(value: Readonly<Record<string, string>>): void {
  counted.set(value);
  keep(KEPT, value);
}

addEventListener("storage", ({ key }) => (key === KEPT || key === null) && counted.set(read())); // another tab has counted, booked or begun again

const set = (ean13: string, typed: string): void => replace({ ...counted.value, [ean13]: typed });

/** A scan counts what its code stands for. */
export function countScanned(ean13: string, factor: number): void {
  const before = quantityOf(counted.value[ean13] ?? "0");
  set(ean13, amount((Number.isNaN(before) ? 0 : before) + factor));
}

const FILTERS = { "": "all", open: "not counted yet", differs: "differs" } as const;

export function Stocktake() {
  const { byCode, order, read: isRead } = useCell(products);
  const found = useCell(counted);
  const [only, setOnly] = useQuery("only");
  const known = order.map((ean13) => byCode.get(ean13)).filter((each): each is Known => each !== undefined);
  const isCounted = ({ product }: Known) => (found[product.ean13] ?? "") !== "";
  const differs = (each: Known) => isCounted(each) && quantityOf(found[each.product.ean13] ?? "") !== each.product.current_stock;
  const shown = known.filter((each) => (only === "open" ? !isCounted(each) : only === "differs" ? differs(each) : true));
  const ready = known.filter((each) => isCounted(each) && !Number.isNaN(quantityOf(found[each.product.ean13] ?? "")));
  const bookAll = () => {
    for (const { product } of ready) count(product.ean13, quantityOf(found[product.ean13] ?? ""));
    replace(Object.fromEntries(Object.entries(found).filter(([ean13]) => !ready.some(({ product }) => product.ean13 === ean13))));
  };
  return (
    <section class="panel" aria-labelledby="stocktake-title">
      <h2 id="stocktake-title">Stocktake</h2>
      <p class="muted" role="status">
        {known.filter(isCounted).length} of {known.length} counted, {known.filter(differs).length} differ. A scan counts one.
      </p>
      <fieldset>
        <legend>Show</legend>
        {Object.entries(FILTERS).map(([value, text]) => (
          <label key={value}>
            <input type="radio" name="only" checked={only === value} onChange={() => setOnly(value, { replace: true })} /> {text}
          </label>
        ))}
      </fieldset>
      {isRead && shown.length === 0 && <Empty title="Nothing here" />}
      <ul class="changes">
        {shown.map(({ product: { ean13, name, unit, current_stock } }) => (
          <li key={ean13}>
            <span>
              {name}{" "}
              <span class="muted">
                {amount(current_stock)} {unit} in the books
              </span>
            </span>
            <span class="choices">
              <input
                inputmode="decimal"
                autocomplete="off"
                aria-label={`Counted ${name}`}
                value={found[ean13] ?? ""}
                aria-invalid={(found[ean13] ?? "") !== "" && Number.isNaN(quantityOf(found[ean13] ?? ""))}
                title={problemOf(found[ean13] || "0")}
                onInput={(event) => set(ean13, event.currentTarget.value)}
              />
              <span>{unit}</span>
            </span>
          </li>
        ))}
      </ul>
      <div class="line">
        <button type="button" class="primary" disabled={ready.length === 0} onClick={bookAll}>
          Book {ready.length} counted
        </button>
        <button type="button" disabled={Object.keys(found).length === 0} onClick={() => replace({})}>
          Begin again
        </button>
      </div>
    </section>
  );
}
