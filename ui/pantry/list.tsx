// The list of products, with their stock and low stock.

import { useMemo, useState } from "preact/hooks";
import { useCell } from "../kit/data/cell";
import { useHeld } from "../kit/data/held";
import { read, textOf } from "../kit/data/http";
import { useLoad } from "../kit/data/load";
import { Pill } from "../kit/parts/pill";
import { Link, useQuery, withQuery } from "../kit/page/router";
import { Empty, ErrorPanel, Skeleton } from "../kit/parts/states";
import { parseSort, sorted, sortText, Table, type Column } from "../kit/parts/table";
import { open } from "./actions";
import { amount, ownCode } from "./codes/codes";
import { API } from "./data/live";
import type { Category } from "./data/types";
import { isLow, products, refresh, type Known, type Products } from "./data/products";
import { Pending } from "./waiting";

const TINT = 600;

const COLUMNS: readonly Column<Known>[] = [
  {
    id: "name",
    title: "Name",
    cell: ({ product }) => (
      <Link to={withQuery({ product: product.ean13 })} class="name" data-row title={product.name}>
        {product.name}
      </Link>
    ),
    by: ({ product }) => product.name.toLowerCase(),
    phone: "first",
  },
  { id: "low", title: "Low", cell: ({ product }) => isLow(product) && <Pill state="low" />, width: "76px" },
  {
    id: "stock",
    title: "Stock",
    cell: ({ product }) => (
      <span class="number">
        {amount(product.current_stock)} {product.unit} <Pending ean13={product.ean13} />
      </span>
    ),
    by: ({ product }) => product.current_stock,
    width: "150px",
    align: "right",
  },
];

const keyOf = ({ product }: Known): string => product.ean13;

/** The active products that match a typed text: a part of the name, or the beginning of the code. */
export function matching({ byCode, order }: Products, typed: string, lowOnly: boolean): Known[] {
  const wanted = typed.trim().toLowerCase();
  const found: Known[] = [];
  for (const ean13 of order) {
    const known = byCode.get(ean13);
    if (!known || (lowOnly && !isLow(known.product))) continue;
    if (known.product.name.toLowerCase().includes(wanted) || ean13.startsWith(wanted)) found.push(known);
  }
  return found;
}

export function List({ typed, chosen }: { typed: string; chosen: string | null }) {
  const list = useCell(products);
  const [sortQuery, setSort] = useQuery("sort");
  const [low, setLow] = useQuery("low");
  const [busy, setBusy] = useState(false);
  const sort = parseSort(sortQuery);
  const [category, setCategory] = useQuery("category");
  const categories = useLoad((signal) => read<Category[]>(`${API}/categories`, signal), []).value ?? [];
  const rows = useMemo(
    () => sorted(matching(list, typed, low !== "").filter(({ product }) => !category || product.category_id === category), COLUMNS, sort),
    [list, typed, low, category, sortQuery],
  );
  const held = useHeld(rows, keyOf, (ean13) => list.byCode.get(ean13), busy, `${typed} ${low} ${category} ${sortQuery}`);
  const lowCount = useMemo(() => matching(list, "", true).length, [list]);
  return (
    <section class="list" aria-labelledby="list-title">
      <div class="line">
        <h2 id="list-title">Products</h2>
        {list.read && (
          <p class="muted" role="status">
            {rows.length === list.order.length ? `${rows.length} kept` : `${rows.length} of ${list.order.length}`}
          </p>
        )}
        {categories.length > 0 && (
          <select aria-label="Category" value={category} onChange={(event) => setCategory(event.currentTarget.value, { replace: true })}>
            <option value="">All</option>
            {categories.map(({ id, name }) => (
              <option key={id} value={id}>
                {name}
              </option>
            ))}
          </select>
        )}
        <button type="button" aria-pressed={low !== ""} onClick={() => setLow(low ? "" : "1", { replace: true })}>
          <Pill state="low" /> <span class="number">{lowCount}</span>
        </button>
        <button type="button" title="For a thing without a barcode" onClick={() => open(ownCode())}>
          New
        </button>
        {held.waiting > 0 && (
          <button type="button" class="primary" onClick={held.release}>
            {held.waiting} new
          </button>
        )}
      </div>
      {list.error && !list.read ? <ErrorPanel error={list.error} retry={() => void refresh()} /> : null}
      {list.error && list.read ? <p class="muted">This is what was known last. {textOf(list.error)}</p> : null}
      {!list.read && !list.error && <Skeleton lines={6} />}
      {list.read && held.shown.length === 0 && <Nothing any={list.order.length > 0} low={low !== ""} typed={typed.trim()} />}
      {held.shown.length > 0 && (
        <Table
          label="Products"
          rows={held.shown}
          keyOf={keyOf}
          columns={COLUMNS}
          sort={sort}
          onSort={(next) => setSort(sortText(next))}
          open={chosen}
          rowClass={({ changed }) => (Date.now() - changed < TINT ? `tint-${changed % 2}` : "")}
          onBusy={setBusy}
        />
      )}
    </section>
  );
}

function Nothing({ any, low, typed }: { any: boolean; low: boolean; typed: string }) {
  if (!any) {
    return (
      <Empty title="There are no products yet">
        <p>Scan a barcode, or type it, to keep the first product.</p>
      </Empty>
    );
  }
  if (typed) return <Empty title={`No product matches ${typed}`} />;
  return <Empty title={low ? "No product is low" : "All products are inactive"} />;
}
