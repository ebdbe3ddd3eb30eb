// Import of a table: products if it has names and units, movements otherwise. A preview comes before the booking.

import { useState } from "preact/hooks";
import { ask, newKey, Problem, textOf } from "../../kit/data/http";
import { amount, codeOf, isSound, quantityOf } from "../codes/codes";
import { API } from "../data/live";
import { products, refresh } from "../data/products";
import { rowsOf, type Row } from "../data/sheet";

interface Line {
  row: number;
  text: string;
  error: string;
}

interface Preview {
  kind: "products" | "movements";
  bodies: readonly object[];
  lines: readonly Line[];
  key: string;
}

interface Imported {
  results: readonly { row: number; error?: string; stock_after?: number }[];
}

const EXAMPLE = "product_ean13;type;quantity\n4006381333931;in;2,5";
const isProducts = (rows: readonly Row[]): boolean => rows.some((row) => "name" in row && "unit" in row);
const codeIn = (row: Row): string => {
  const given = row["product_ean13"] ?? row["ean13"] ?? row["code"] ?? "";
  return codeOf(given) ?? given;
};

export function Import() {
  const [text, setText] = useState("");
  const [preview, setPreview] = useState<Preview | null>(null);
  const [result, setResult] = useState("");
  const [problem, setProblem] = useState("");
  const guarded = (work: () => Promise<void>) => {
    setProblem("");
    work().catch((error) => setProblem(textOf(error)));
  };
  const look = () =>
    guarded(async () => {
      const rows = rowsOf(text);
      if (!rows.length) throw new Error("There is no row below the names.");
      setResult("");
      setPreview(isProducts(rows) ? ofProducts(rows) : await ofMovements(rows));
    });
  const book = (good: Preview) =>
    guarded(async () => {
      const done = good.kind === "products" ? await createAll(good) : await bookAll(good);
      setPreview({ ...good, lines: done });
      const refused = done.filter(({ error }) => error).length;
      setResult(`${done.length - refused} rows are done, ${refused} refused`);
      void refresh();
    });
  const usable = preview?.lines.filter(({ error }) => !error).length ?? 0;
  return (
    <section class="panel create" aria-labelledby="import-title">
      <h2 id="import-title">Import</h2>
      <p>
        A table with names in its first line: <code>product_ean13</code>, <code>type</code>, <code>quantity</code> for movements, or{" "}
        <code>ean13</code>, <code>name</code>, <code>unit</code>, <code>min_stock</code> for products. Commas, semicolons or tabs separate the fields.
      </p>
      <label for="import-file">File</label>
      <input id="import-file" type="file" accept=".csv,.txt,.tsv,text/csv" onChange={(event) => void event.currentTarget.files?.[0]?.text().then(setText)} />
      <label for="import-text">Table</label>
      <textarea id="import-text" rows={6} placeholder={EXAMPLE} value={text} onInput={(event) => setText(event.currentTarget.value)} />
      <p class="bad" role="alert">
        {problem}
      </p>
      <div class="line">
        <button type="button" disabled={!text.trim()} onClick={look}>
          Preview
        </button>
        {preview && !result && (
          <button type="button" class="primary" disabled={usable === 0} onClick={() => book(preview)}>
            {preview.kind === "products" ? "Create" : "Book"} {usable} of {preview.lines.length}
          </button>
        )}
      </div>
      <p class="good" role="status">
        {result}
      </p>
      {preview && (
        <ul class="changes" aria-label="Rows">
          {preview.lines.map(({ row, text: said, error }) => (
            <li key={row}>
              <span>
                {row}. {said} {error && <span class="bad">{error}</span>}
              </span>
            </li>
          ))}
        </ul>
      )}
    </section>
  );
}

function ofProducts(rows: readonly Row[]): Preview {
  const { byCode } = products.value;
  const bodies = rows.map((row) => ({
    ean13: codeIn(row),
    name: row["name"] ?? "",
    unit: row["unit"] ?? "",
    min_stock: quantityOf(row["min_stock"] || "0"),
    description: row["description"] ?? "",
  }));
  const lines = bodies.map(({ ean13, name, unit, min_stock }, place) => {
    const error = !isSound(ean13)
      ? `${ean13} is not a barcode`
      : byCode.has(ean13)
        ? "it exists already"
        : !name || !unit
          ? "name or unit is missing"
          : Number.isNaN(min_stock)
            ? "min_stock is not a quantity"
            : "";
    return { row: place + 1, text: `${ean13} ${name}, ${unit}`, error };
  });
  return { kind: "products", bodies, lines, key: newKey() };
}

async function createAll({ bodies, lines, key }: Preview): Promise<Line[]> {
  const done: Line[] = [];
  for (const [place, line] of lines.entries()) {
    if (line.error) {
      done.push(line);
      continue;
    }
    const { ean13, ...body } = bodies[place] as { ean13: string };
    try {
      await ask("POST", `${API}/products/${ean13}`, { body, key: `${key}-${place}` });
      done.push({ ...line, text: `${line.text}: created` });
    } catch (error) {
      if (!(error instanceof Problem) || error.status === 0) throw error; // a repetition continues here: each row has its key
      done.push({ ...line, error: error.message });
    }
  }
  return done;
}

async function ofMovements(rows: readonly Row[]): Promise<Preview> {
  const bodies = rows.map((row) => {
    const quantity = quantityOf(row["quantity"] ?? "");
    const body: Record<string, unknown> = { product_ean13: codeIn(row), type: row["type"] ?? "", quantity: Number.isNaN(quantity) ? null : quantity };
    for (const name of ["reason", "notes", "created_by"]) if (row[name]) body[name] = row[name];
    return body;
  });
  const { body } = await ask<Imported>("POST", `${API}/movements:batch?dry_run=true`, { body: bodies });
  return { kind: "movements", bodies, lines: linesOf(bodies, body), key: newKey() };
}

async function bookAll({ bodies, key }: Preview): Promise<Line[]> {
  const { body } = await ask<Imported>("POST", `${API}/movements:batch`, { body: bodies, key });
  return linesOf(bodies, body);
}

function linesOf(bodies: readonly object[], { results }: Imported): Line[] {
  return results.map(({ row, error = "", stock_after }) => {
    const { product_ean13 = "", type = "", quantity } = (bodies[row - 1] ?? {}) as { product_ean13?: string; type?: string; quantity?: number };
    const name = products.value.byCode.get(product_ean13)?.product.name ?? product_ean13;
    const then = stock_after === undefined ? "" : `, ${amount(stock_after)} there then`;
    return { row, text: `${name}: ${type} ${quantity ?? ""}${then}`, error };
  });
}
