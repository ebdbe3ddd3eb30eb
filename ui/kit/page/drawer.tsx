// A panel next to a list for the open item, at the right, the whole screen on a phone. Escape closes it; focus goes back.

import type { ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { useKeys } from "./keys";

interface Props {
  title: ComponentChildren;
  close: () => void;
  /** For content with two columns. */
  isWide?: boolean;
  children: ComponentChildren;
}

const NARROW = "(max-width: 900px)";

export function Drawer({ title, close, isWide = false, children }: Props) {
  const dialog = useRef<HTMLDialogElement>(null);
  const heading = useRef<HTMLHeadingElement>(null);
  const before = useRef(document.activeElement);
  useEffect(() => {
    if (matchMedia(NARROW).matches) dialog.current?.showModal();
    else dialog.current?.show();
    heading.current?.focus();
    return () => {
      const opener = before.current;
      if (opener instanceof HTMLElement && opener.isConnected) opener.focus();
    };
  }, []);
  useKeys([{ keys: "Escape", does: "close the panel", run: close }]);
  /** In a field Escape leaves the field, and the typed text stays. */
  const keys = (event: KeyboardEvent) => {
    if (event.key !== "Escape" || !(event.target instanceof HTMLElement) || !event.target.matches("input, textarea, select")) return;
    event.preventDefault();
    event.stopPropagation();
    event.target.blur();
    heading.current?.focus();
  };
  return (
    <dialog
      ref={dialog}
      class={`drawer${isWide ? " is-wide" : ""}`}
      aria-labelledby="drawer-title"
      onKeyDown={keys}
      onCancel={(event) => {
        event.preventDefault();
        close();
      }}
    >
      <header>
        <h2 id="drawer-title" tabIndex={-1} ref={heading}>
          {title}
        </h2>
        <button type="button" class="icon" aria-label="Close" title="Close (Esc)" onClick={close}>
          ✕
        </button>
      </header>
      <div class="drawer-body">{children}</div>
    </dialog>
  );
}
