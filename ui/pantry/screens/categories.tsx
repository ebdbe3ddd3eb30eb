// Categories: a list, new ones, other names.

import { useState } from "preact/hooks";
import { ask, newKey, read, textOf } from "../../kit/data/http";
import { useLoad } from "../../kit/data/load";
import { Empty, ErrorPanel, Skeleton } from "../../kit/parts/states";
import { API } from "../data/live";
import type { Category } from "../data/types";

/** The limit of pantry/domain/category.py. */
const NAME_LENGTH = 100;

export function Categories() {
  const { value, error, reload } = useLoad((signal) => read<Category[]>(`${API}/categories`, signal), []);
  if (error) return <ErrorPanel error={error} retry={reload} />;
  if (!value) return <Skeleton />;
  return (
    <section class="panel" aria-labelledby="categories-title">
      <h2 id="categories-title">Categories</h2>
      {value.length === 0 && <Empty title="No category yet" />}
      <ul class="changes">
        {value.map((category) => (
          <li key={category.id}>
            <Name label={`Name of ${category.name}`} name={category.name} action="Rename" send={(name) => rename(category, name)} done={reload} />
          </li>
        ))}
        <li>
          <Name key={value.length} label="New category" name="" action="Add" send={add} done={reload} />
        </li>
      </ul>
    </section>
  );
}

const add = (name: string) => ask("POST", `${API}/categories`, { body: { name }, key: newKey() });

const rename = ({ id, description }: Category, name: string) => ask("PUT", `${API}/categories/${id}`, { body: { name, description } });

interface NameProps {
  label: string;
  name: string;
  action: string;
  send: (name: string) => Promise<unknown>;
  done: () => void;
}

function Name({ label, name, action, send, done }: NameProps) {
  const [typed, setTyped] = useState(name);
  const [problem, setProblem] = useState("");
  const submit = (event: SubmitEvent) => {
    event.preventDefault();
    send(typed.trim()).then(
      () => {
        setProblem("");
        done();
      },
      (error) => setProblem(textOf(error)),
    );
  };
  return (
    <form class="line" onSubmit={submit}>
      <input aria-label={label} required pattern=".*\S.*" maxLength={NAME_LENGTH} value={typed} onInput={(event) => setTyped(event.currentTarget.value)} />
      <button type="submit" disabled={!typed.trim() || typed.trim() === name}>
        {action}
      </button>
      <span class="bad" role="alert">
        {problem}
      </span>
    </form>
  );
}
