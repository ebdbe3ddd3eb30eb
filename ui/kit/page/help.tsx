// The keys of the current screen, and the licences of the packages that are bundled with the page.

import { useEffect, useRef } from "preact/hooks";
import { keysNow } from "./keys";

export function Help({ close }: { close: () => void }) {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => dialog.current?.showModal(), []);
  return (
    <dialog ref={dialog} class="help" aria-labelledby="help-title" onClose={close}>
      <h2 id="help-title">Keys</h2>
      <dl>
        {keysNow().map((key) => (
          <div key={key.keys}>
            <dt>
              {key.keys.split(" ").map((part) => (
                <kbd key={part}>{part}</kbd>
              ))}
            </dt>
            <dd>{key.does}</dd>
          </div>
        ))}
      </dl>
      <p>
        <a href={`${import.meta.env.BASE_URL}licenses.txt`} target="_blank" rel="noreferrer">
          Licences of bundled packages
        </a>
      </p>
      <div class="buttons">
        <button type="button" onClick={() => dialog.current?.close()}>
          Close
        </button>
      </div>
    </dialog>
  );
}
