// The queries that were run in this browser.

import { Ago } from "../kit/parts/time";
import { type Ran, titleOf } from "./tabs";

interface Props {
  history: readonly Ran[];
  open: (query: string, variables: string) => void;
  clear: () => void;
}

export function Past({ history, open, clear }: Props) {
  if (history.length === 0) return <p class="muted">Queries that are run appear here. They stay in this browser.</p>;
  return (
    <>
      <ul class="plain-list past" aria-label="Queries that were run, the latest first">
        {history.map(({ query, variables, at }) => (
          <li key={`${at} ${query}`}>
            <button type="button" class="as-link" title={query} onClick={() => open(query, variables)}>
              {titleOf(query)}
            </button>{" "}
            <span class="muted">
              <Ago at={new Date(at).toISOString()} /> ago{variables.trim() && ", with variables"}
            </span>
          </li>
        ))}
      </ul>
      <p>
        <button type="button" class="small" onClick={clear}>
          Clear the history
        </button>
      </p>
    </>
  );
}
