// Changes that wait for the service, and changes that it refused, one by one.

import { useCell } from "../kit/data/cell";
import { Ago } from "../kit/parts/time";
import { drop, queue, type Change } from "./queue";

export function Waiting() {
  const { waiting, refused, problem, isDurable } = useCell(queue);
  const isShown = waiting.length > 0 && problem !== null;
  return (
    <>
      {isShown && (
        <section class="panel waiting" aria-label="Waiting changes">
          <p role="status">
            {waiting.length === 1 ? "1 change waits" : `${waiting.length} changes wait`} for the service and will be sent in this order. {problem}
            {!isDurable && " This browser stores nothing: keep this page open until they are sent."}
          </p>
          <List changes={waiting} />
        </section>
      )}
      <div role="alert">
        {refused.length > 0 && (
          <section class="panel refused" aria-label="Refused changes">
            <List changes={refused} />
          </section>
        )}
      </div>
    </>
  );
}

function List({ changes }: { changes: readonly Change[] }) {
  return (
    <ul class="changes">
      {changes.map((change) => (
        <li key={change.id}>
          <span>
            {change.text}
            <span class="muted">
              , <Ago at={new Date(change.at).toISOString()} />
            </span>
            {change.refusal !== null && <span class="bad">: {change.refusal}</span>}
          </span>
          <Drop change={change} />
        </li>
      ))}
    </ul>
  );
}

function Drop({ change }: { change: Change }) {
  if (change.refusal === null && change.sent) return null; // it may have taken effect
  const title = change.refusal === null ? "Take back" : "Dismiss";
  return (
    <button type="button" aria-label={`${title} ${change.text}`} onClick={() => void drop(change)}>
      {title}
    </button>
  );
}
