// The text of an empty list: no items yet, no matching item, not loaded yet, not readable.

import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { Problem, textOf } from "../data/http";
import { useLate } from "../data/load";

export function Empty({ title, children }: { title: string; children?: ComponentChildren }) {
  return (
    <div class="empty">
      <p class="empty-title">{title}</p>
      {children}
    </div>
  );
}

export function ErrorPanel({ error, retry }: { error: unknown; retry?: (() => void) | undefined }) {
  return (
    <div class="error" role="alert">
      <p>{textOf(error)}</p>
      {error instanceof Problem && error.fields.length > 0 && (
        <ul>
          {error.fields.map((field) => (
            <li>{field.detail}</li>
          ))}
        </ul>
      )}
      {error instanceof Problem && error.requestId && (
        <p class="muted">
          Request <code>{error.requestId}</code>
        </p>
      )}
      {retry && (
        <button type="button" onClick={retry}>
          Try again
        </button>
      )}
    </div>
  );
}

/** Grey bars, once reading has taken a moment. */
export function Skeleton({ lines = 4 }: { lines?: number }) {
  return useLate(true) ? (
    <div class="skeleton" role="status" aria-label="Reading">
      {Array.from({ length: lines }, (_, index) => (
        <span key={index} />
      ))}
    </div>
  ) : null;
}

/** A command to type, with a button that copies it. */
export function Command({ text }: { text: string }) {
  return (
    <p class="command">
      <code>{text}</code>
      <Copy text={text} what="command" />
    </p>
  );
}

export function Copy({ text, what }: { text: string; what: string }) {
  const [done, setDone] = useState(false);
  const copy = async () => {
    await navigator.clipboard.writeText(text);
    setDone(true);
    setTimeout(() => setDone(false), 2_000);
  };
  if (!navigator.clipboard) return null; // on an origin that is not secure
  return (
    <button type="button" class="small" onClick={() => void copy()}>
      {done ? "Copied" : `Copy ${what}`}
    </button>
  );
}
