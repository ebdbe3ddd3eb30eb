// Change a product, or keep it no more.

import { useState } from "preact/hooks";
import { ask, read, textOf } from "../../kit/data/http";
import { useLoad } from "../../kit/data/load";
import { ErrorPanel, Skeleton } from "../../kit/parts/states";
import { NAME_LENGTH, UNIT_LENGTH } from "../create";
import { amount, problemOf, quantityOf } from "../codes/codes";
import { API } from "../data/live";
import { say } from "../data/messages";
import { take, takePart } from "../data/products";
import type { Category, Product } from "../data/types";

export function Edit({ product }: { product: Product }) {
  const [isOpen, setOpen] = useState(false);
  return (
    <details open={isOpen} onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>Edit</summary>
      {isOpen && <Loaded ean13={product.ean13} close={() => setOpen(false)} />}
    </details>
  );
}

/** The form begins with the present product, and is refused if somebody changes that in the meantime. */
function Loaded({ ean13, close }: { ean13: string; close: () => void }) {
  const found = useLoad((signal) => ask<Product>("GET", `${API}/products/${ean13}`, { signal }), [ean13]);
  const categories = useLoad((signal) => read<Category[]>(`${API}/categories`, signal), []);
  const error = found.error ?? categories.error;
  if (error) return <ErrorPanel error={error} retry={found.error ? found.reload : categories.reload} />;
  if (!found.value || !categories.value) return <Skeleton />;
  return <Form key={found.value.etag} product={found.value.body} etag={found.value.etag} categories={categories.value} close={close} />;
}

interface FormProps {
  product: Product;
  etag: string;
  categories: readonly Category[];
  close: () => void;
}

function Form({ product, etag, categories, close }: FormProps) {
  const { ean13 } = product;
  const [name, setName] = useState(product.name);
  const [unit, setUnit] = useState(product.unit);
  const [factor, setFactor] = useState("");
  const [least, setLeast] = useState(amount(product.min_stock));
  const [category, setCategory] = useState(product.category_id ?? "");
  const [description, setDescription] = useState(product.description);
  const [problem, setProblem] = useState("");
  const send = async (method: "PUT" | "DELETE", done: string, body?: object) => {
    try {
      const { body: changed, sequence } = await ask<Product | "">(method, `${API}/products/${ean13}`, {
        ...(body ? { body } : {}),
        headers: etag ? { "If-Match": etag } : {},
      });
      if (changed === "") takePart({ ean13, active: false }, sequence);
      else take(changed, sequence);
      say(done);
      close();
    } catch (error) {
      setProblem(textOf(error));
    }
  };
  const isOtherUnit = unit.trim() !== product.unit;
  const submit = (event: SubmitEvent) => {
    event.preventDefault();
    const converted = isOtherUnit && factor ? { factor: Number(factor) } : {};
    // Without a minimum in the request, the factor converts the present one.
    const minimum = "factor" in converted && least === amount(product.min_stock) ? {} : { min_stock: quantityOf(least) };
    const body = { name: name.trim(), unit: unit.trim(), ...converted, ...minimum, category_id: category || null, description };
    void send("PUT", `${body.name} is changed`, body);
  };
  return (
    <form class="create" onSubmit={submit}>
      <label for="edit-name">Name</label>
      <input id="edit-name" required pattern=".*\S.*" maxLength={NAME_LENGTH} value={name} onInput={(event) => setName(event.currentTarget.value)} />
      <label for="edit-unit">Unit</label>
      <input id="edit-unit" required pattern=".*\S.*" maxLength={UNIT_LENGTH} value={unit} onInput={(event) => setUnit(event.currentTarget.value)} />
      {isOtherUnit && (
        <>
          <label for="edit-factor">
            1 {product.unit} is how many {unit.trim()}?
          </label>
          <input id="edit-factor" type="number" min="0.000001" max="1000000" step="0.000001" value={factor} onInput={(event) => setFactor(event.currentTarget.value)} />
        </>
      )}
      <label for="edit-least">Low from this stock down</label>
      <input
        id="edit-least"
        inputmode="decimal"
        value={least}
        aria-invalid={Number.isNaN(quantityOf(least))}
        title={problemOf(least)}
        onInput={(event) => setLeast(event.currentTarget.value)}
      />
      <label for="edit-category">Category</label>
      <select id="edit-category" value={category} onChange={(event) => setCategory(event.currentTarget.value)}>
        <option value="">None</option>
        {categories.map(({ id, name: label }) => (
          <option key={id} value={id}>
            {label}
          </option>
        ))}
      </select>
      <label for="edit-description">Description</label>
      <textarea id="edit-description" rows={2} value={description} onInput={(event) => setDescription(event.currentTarget.value)} />
      <p class="bad" role="alert">
        {problem}
      </p>
      <div class="line">
        <button type="submit" class="primary" disabled={Number.isNaN(quantityOf(least))}>
          Save
        </button>
        {product.active && (
          <button type="button" onClick={() => void send("DELETE", `${product.name} is not kept any more`)}>
            Keep it no more
          </button>
        )}
      </div>
    </form>
  );
}
