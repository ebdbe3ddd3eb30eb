// Import of a table: movements if it has types and quantities, products if it has names and units. A preview comes before the booking.

import { Cell, useCell } from "../../kit/data/cell";
import { ask, newKey, Problem, textOf } from "../../kit/data/http";
import { keep, kept } from "../../kit/data/kept";
import { amount } from "../codes/codes";
import { API } from "../data/live";
import { products, refresh } from "../data/products";
import { isOpen } from "../data/queue";

interface Kind {
  path: string;
  verb: string;
}

interface Row {
  row: number;
  error?: string;
  ean13?: string;
  name?: string;
  unit?: string;
  product_ean13?: string;
  type?: string;
  quantity?: number;
  min_stock?: number;
  category?: string;
  stock_after?: number;
}

interface Imported {
  accepted: number;
  refused: number;
  /** Rows that may have taken effect: the log has not answered. */
  unknown: number;
  /** Columns without effect. */
  ignored: readonly string[];
  /** How to get the effect that they might be for. */
  note?: string;
  results: readonly Row[];
}

/** The rows as the service read them, with the results that they would have. */
interface Preview {
  kind: Kind;
  table: string;
  rows: readonly Row[];
  ignored: string;
  accepted: number;
  key: string;
  /** It was sent, and not all of its results are known: it can be sent again under its key. */
  open: boolean;
}

const EXAMPLE = "product_ean13;type;quantity\n4006381333931;in;2,5";
const PRODUCTS: Kind = { path: "/products:batch", verb: "Create" };
const MOVEMENTS: Kind = { path: "/movements:batch", verb: "Book" };
/** Milliseconds that the service may take for a large table. */
const PATIENCE = 300_000;

const kindOf = (table: string): Kind => {
  const names = (table.trimStart().split(/\r?\n/, 1)[0] ?? "").toLowerCase().split(/[;,\t]/).map((name) => name.replace(/["\s\ufeff]/g, ""));
  const has = (...wanted: string[]) => wanted.every((name) => names.includes(name));
  return has("name", "unit") && !has("type", "quantity") ? PRODUCTS : MOVEMENTS; // further columns are ignored
};

/** The text of a file. Raises Error for other characters than the service takes: their letters would become other ones. */
async function contentOf(file: File): Promise<string> {
  const bytes = await file.arrayBuffer();
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    throw new Error(`${file.name} is not UTF-8. Save it as "CSV UTF-8", or copy the table into the field.`);
  }
}

async function send({ path }: Kind, table: string, options: { key?: string; dryRun?: boolean }): Promise<Imported> {
  const address = `${API}${path}${options.dryRun ? "?dry_run=true" : ""}`;
  const { body } = await ask<Imported>("POST", address, { body: table, media: "text/csv", patience: PATIENCE, ...(options.key ? { key: options.key } : {}) });
  return body;
}

interface Draft {
  text: string;
  preview: Preview | null;
  result: string;
  problem: string;
  /** Another preview would have another key. */
  isSending: boolean;
}

const OPEN = "pantry-import";
const unsettled = kept<Preview | null>(OPEN, null, "sessionStorage");

/** The typed table and its results. They outlast a change of the view. */
const draft = new Cell<Draft>({ text: unsettled?.table ?? "", preview: unsettled, result: "", problem: "", isSending: false });

const set = (part: Partial<Draft>): void => draft.set({ ...draft.value, ...part });

/** Show a preview. An open one also outlasts a reload of the page: otherwise its table could be booked under another key. */
function show(preview: Preview | null): void {
  keep(OPEN, preview?.open ? preview : null, "sessionStorage");
  set({ preview });
}

function guarded(work: () => Promise<void>): void {
  set({ problem: "", isSending: true });
  work()
    .catch((error) => set({ problem: textOf(error) }))
    .finally(() => set({ isSending: false }));
}

const look = (table: string): void =>
  guarded(async () => {
    set({ result: "" });
    show(null);
    const kind = kindOf(table);
    const { results, accepted, ignored, note = "" } = await send(kind, table, { dryRun: true });
    if (!results.length) throw new Error("There is no row below the names.");
    show({ kind, table, rows: results, ignored: ignoredText(ignored, note), accepted, key: newKey(), open: false });
  });

const load = (file: File): void =>
  guarded(async () => {
    set({ text: "" });
    set({ text: await contentOf(file) });
  });

const book = (shown: Preview): void =>
  guarded(async () => {
    show({ ...shown, open: true });
    try {
      const done = await send(shown.kind, shown.table, { key: shown.key }); // a repetition with the key takes effect once
      show({ ...shown, rows: shown.rows.map((row, place) => asDone(row, done.results[place])), open: done.unknown > 0 });
      set({ result: `${done.accepted} rows are done, ${done.refused} refused${done.unknown ? `, ${done.unknown} not known` : ""}` });
      void refresh();
    } catch (error) {
      if (error instanceof Problem && !isOpen(error)) show(shown);
      throw error;
    }
  });

export function Import() {
  const { text, preview, result, problem, isSending } = useCell(draft);
  const isPresent = preview?.table === text;
  const isUnsettled = preview !== null && preview.open && isPresent; // a new preview would have another key
  const shown = isPresent || preview?.open ? preview : null; // without an answer, an earlier table can be sent again
  return (
    <section class="panel create" aria-labelledby="import-title">
      <h2 id="import-title">Import</h2>
      <p>
        A table with names in its first line: <code>product_ean13</code>, <code>type</code>, <code>quantity</code> for movements, or{" "}
        <code>ean13</code>, <code>name</code>, <code>unit</code>, <code>min_stock</code>, <code>category</code> for products. Commas, semicolons or tabs separate the cells, and decimals may have a comma.
      </p>
      <label for="import-file">File</label>
      <input
        id="import-file"
        type="file"
        accept=".csv,.txt,.tsv,text/csv"
        onClick={(event) => (event.currentTarget.value = "")} // a file that was saved again is chosen again
        onChange={(event) => event.currentTarget.files?.[0] && load(event.currentTarget.files[0])}
      />
      <label for="import-text">Table</label>
      <textarea id="import-text" rows={6} placeholder={EXAMPLE} value={text} onInput={(event) => set({ text: event.currentTarget.value })} />
      <p class="bad" role="alert">
        {problem}
      </p>
      <div class="line">
        <button type="button" disabled={!text.trim() || isSending || isUnsettled} onClick={() => look(text)}>
          Preview
        </button>
        {shown && (shown.open || !result) && (
          <button type="button" class="primary" disabled={isSending || shown.accepted === 0} onClick={() => book(shown)}>
            {shown.open && !isSending ? "Send again" : `${shown.kind.verb} ${shown.accepted} of ${shown.rows.length}`}
          </button>
        )}
      </div>
      <p class="good" role="status">
        {result}
      </p>
      {shown?.ignored && <p class="muted">{shown.ignored}</p>}
      {shown && (
        <ul class="changes" aria-label="Rows">
          {shown.rows.map((row) => (
            <li key={row.row}>
              <span>
                {row.row}. {described(row)} {row.error && <span class="bad">{row.error}</span>}
              </span>
            </li>
          ))}
        </ul>
      )}
    </section>
  );
}

const ignoredText = (ignored: readonly string[], note: string): string =>
  ignored.length ? `Columns without effect: ${ignored.join(", ")}.${note ? ` ${note}.` : ""}` : "";

/** A row of the preview with its result, which replaces the expected one. */
function asDone({ error: _error, stock_after: _stock, ...row }: Row, result: Row | undefined): Row {
  return { ...row, ...result };
}

function described({ ean13 = "", name, unit, min_stock, category, product_ean13 = "", type, quantity, stock_after }: Row): string {
  if (name !== undefined) return `${ean13} ${name}, ${unit}${min_stock ? `, minimum ${amount(min_stock)}` : ""}${category ? `, in ${category}` : ""}`;
  if (quantity === undefined) return ean13;
  const product = products.value.byCode.get(product_ean13)?.product.name ?? product_ean13;
  const then = stock_after === undefined ? "" : `, ${amount(stock_after)} there then`;
  return `${product}: ${type} ${amount(quantity)}${then}`;
}
