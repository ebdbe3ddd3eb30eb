// The codes of a product: other barcodes and packs, each with the quantity that it stands for.

import { useEffect, useState } from "preact/hooks";
import { useCell } from "../kit/data/cell";
import { textOf } from "../kit/data/http";
import { go, useQuery, withQuery } from "../kit/page/router";
import { amount, codeOf, isSound, itemOf, problemOf, quantityOf } from "./codes/codes";
import { assign, barcodes, release } from "./data/barcodes";
import { say } from "./data/messages";
import { products } from "./data/products";
import type { Barcode, Product } from "./data/types";

export function Codes({ product }: { product: Product }) {
  const [pack] = useQuery("pack");
  const all = useCell(barcodes);
  const codes = [...all.values()].filter(({ product_ean13 }) => product_ean13 === product.ean13);
  const isAsked = pack !== "" && !all.has(pack);
  const [isOpen, setOpen] = useState(isAsked);
  useEffect(() => {
    if (isAsked) setOpen(true);
  }, [isAsked]);
  return (
    <details class="codes" open={isOpen} onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>
        Codes <span class="muted">{codes.length ? codes.length + 1 : ""}</span>
      </summary>
      {isOpen && <Opened product={product} codes={codes} pack={isAsked ? pack : ""} />}
    </details>
  );
}

function Opened({ product, codes, pack }: { product: Product; codes: readonly Barcode[]; pack: string }) {
  return (
    <>
      <ul class="changes">
        <li>
          <span>
            <code>{product.ean13}</code> <span class="muted">1 {product.unit}</span>
          </span>
        </li>
        {codes.map(({ code, factor }) => (
          <li key={code}>
            <span>
              <code>{code}</code>{" "}
              <span class="muted">
                {amount(factor)} {product.unit}
              </span>
            </span>
            <Remove code={code} />
          </li>
        ))}
      </ul>
      <Add key={pack} product={product} pack={pack} />
    </>
  );
}

function Remove({ code }: { code: string }) {
  const [problem, setProblem] = useState("");
  return (
    <span class="choices">
      {problem && (
        <span class="bad" role="alert">
          {problem}
        </span>
      )}
      <button type="button" aria-label={`Remove code ${code}`} onClick={() => void release(code).catch((error) => setProblem(textOf(error)))}>
        Remove
      </button>
    </span>
  );
}

function Add({ product, pack }: { product: Product; pack: string }) {
  const [typed, setTyped] = useState(pack);
  const [count, setCount] = useState(pack ? "" : "1");
  const [problem, setProblem] = useState("");
  const factor = quantityOf(count);
  const add = async (event: SubmitEvent) => {
    event.preventDefault();
    const code = codeOf(typed);
    if (!code || !isSound(code)) return setProblem(`${typed} is not a barcode.`);
    try {
      await assign(code, product.ean13, factor);
      setTyped("");
      setCount("1");
      setProblem("");
      go(withQuery({ pack: null }), { replace: true });
      say(`${code} is ${amount(factor)} ${product.unit} of ${product.name} now`);
    } catch (error) {
      setProblem(textOf(error));
    }
  };
  return (
    <form class="create" onSubmit={(event) => void add(event)}>
      {pack && (
        <p>
          <code>{pack}</code> is a pack{itemOf(pack) === product.ean13 ? " of it" : ""}. How much is in it?
        </p>
      )}
      <label for="code-new">Another code</label>
      <input id="code-new" inputmode="numeric" autocomplete="off" required value={typed} onInput={(event) => setTyped(event.currentTarget.value)} />
      <label for="code-factor">It stands for ({product.unit})</label>
      <input
        id="code-factor"
        inputmode="decimal"
        autocomplete="off"
        required
        value={count}
        aria-invalid={count !== "" && !(factor > 0)}
        title={problemOf(count || "0")}
        onInput={(event) => setCount(event.currentTarget.value)}
      />
      <p class="bad" role="alert">
        {problem}
      </p>
      <button type="submit" disabled={!(factor > 0)}>
        Add the code
      </button>
    </form>
  );
}

/** An unknown code can be another code of a product that is kept. */
export function AssignTo({ code }: { code: string }) {
  const { byCode, order } = useCell(products);
  const [chosen, setChosen] = useState("");
  const [count, setCount] = useState("1");
  const [problem, setProblem] = useState("");
  const factor = quantityOf(count);
  const submit = async (event: SubmitEvent) => {
    event.preventDefault();
    try {
      await assign(code, chosen, factor);
      go(withQuery({ product: chosen, pack: null }), { replace: true });
    } catch (error) {
      setProblem(textOf(error));
    }
  };
  if (!order.length) return null;
  return (
    <details>
      <summary>It is another code of a product</summary>
      <form class="create" onSubmit={(event) => void submit(event)}>
        <label for="assign-to">Product</label>
        <select id="assign-to" required value={chosen} onChange={(event) => setChosen(event.currentTarget.value)}>
          <option value="">Choose</option>
          {order.map((ean13) => (
            <option key={ean13} value={ean13}>
              {byCode.get(ean13)?.product.name}
            </option>
          ))}
        </select>
        <label for="assign-factor">It stands for ({byCode.get(chosen)?.product.unit ?? "quantity"})</label>
        <input id="assign-factor" inputmode="decimal" autocomplete="off" required value={count} title={problemOf(count || "0")} onInput={(event) => setCount(event.currentTarget.value)} />
        <p class="bad" role="alert">
          {problem}
        </p>
        <button type="submit" disabled={!chosen || !(factor > 0)}>
          Assign the code
        </button>
      </form>
    </details>
  );
}
