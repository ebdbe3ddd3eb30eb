// The values of a figure as a table, for users who do not see the figure or want the numbers.

import { useState } from "preact/hooks";

const MOST = 500;

interface Props {
  /** The kind of the rows. */
  caption: string;
  head: readonly string[];
  /** Made only when somebody opens the table. */
  rows: () => readonly (readonly (string | number | null)[])[];
  /** The action of a row's name, by the index of the row. */
  onOpen?: (index: number) => void;
}

export function AsTable({ caption, head, rows, onOpen }: Props) {
  const [isOpen, setOpen] = useState(false);
  return (
    <details class="as-table" onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>Show as table</summary>
      {isOpen && <Rows caption={caption} head={head} all={rows()} onOpen={onOpen} />}
    </details>
  );
}

interface RowsProps {
  caption: string;
  head: readonly string[];
  all: ReturnType<Props["rows"]>;
  onOpen: Props["onOpen"];
}

function Rows({ caption, head, all, onOpen }: RowsProps) {
  return (
    <div class="scrolled" tabIndex={0} role="region" aria-label={caption}>
      <table class="plain">
        <caption>
          {caption}
          {all.length > MOST && `, the first ${MOST} of ${all.length.toLocaleString("en")}`}
        </caption>
        <thead>
          <tr>
            {head.map((name, index) => (
              <th key={name} scope="col" class={index ? "right" : ""}>
                {name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {all.slice(0, MOST).map((row, line) => (
            <tr key={line}>
              {row.map((cell, index) =>
                index ? (
                  <td key={index} class="right number">
                    {cell === null ? "–" : typeof cell === "number" ? cell.toLocaleString("en", { maximumFractionDigits: 2 }) : cell}
                  </td>
                ) : (
                  <th key={index} scope="row">
                    {onOpen ? (
                      <button type="button" class="as-link" onClick={() => onOpen(line)}>
                        {cell}
                      </button>
                    ) : (
                      cell
                    )}
                  </th>
                ),
              )}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
