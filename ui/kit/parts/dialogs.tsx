// Questions before something is ended, and messages after something was done.

import { useEffect, useRef } from "preact/hooks";
import { Cell, useCell } from "../data/cell";

interface Question {
  title: string;
  text: string;
  action: string;
  answer: (yes: boolean) => void;
}

interface Said {
  text: string;
  undo: (() => void) | null;
  bad: boolean;
}

const question = new Cell<Question | null>(null);
const said = new Cell<readonly Said[]>([]);
const MOMENT = 6_000;
const MOST = 3;

/** Ask before doing what cannot be undone. `title` names the object and how many; `action` is the button's text. */
export function confirm(asked: { title: string; text: string; action: string }): Promise<boolean> {
  return new Promise((answer) => question.set({ ...asked, answer }));
}

/** Show a message of success. */
export function say(text: string): void {
  show({ text, undo: null, bad: false });
}

/** Show a message of failure. */
export function complain(text: string): void {
  show({ text, undo: null, bad: true });
}

function show(what: Said): void {
  const others = said.value.filter((each) => each.undo);
  said.set([...others, what].slice(-MOST));
  setTimeout(() => unsay(what), MOMENT);
}

function unsay(what: Said): void {
  said.set(said.value.filter((each) => each !== what));
}

let pending: (() => void) | null = null;

/** Do something in a moment, unless it is undone till then. A page that is left does it at once. */
export function offerUndo(text: string, { act, undo }: { act: () => void; undo: () => void }): void {
  pending?.();
  const settle = (action: () => void) => () => {
    if (pending !== commit) return;
    pending = null;
    clearTimeout(later);
    removeEventListener("pagehide", commit);
    unsay(offer);
    action();
  };
  const commit = settle(act);
  const offer: Said = { text, undo: settle(undo), bad: false };
  const later = setTimeout(commit, MOMENT);
  addEventListener("pagehide", commit);
  pending = commit;
  show(offer);
}

export function Dialogs() {
  const asked = useCell(question);
  const shown = useCell(said);
  return (
    <>
      {asked && <Confirm key={asked.title} asked={asked} />}
      <div class="said" role="status">
        {shown.map((each) => (
          <p key={each.text} class={each.bad ? "bad" : ""}>
            {each.text}
            {each.undo && (
              <button type="button" onClick={each.undo}>
                Undo
              </button>
            )}
          </p>
        ))}
      </div>
    </>
  );
}

function Confirm({ asked }: { asked: Question }) {
  const dialog = useRef<HTMLDialogElement>(null);
  const keep = useRef<HTMLButtonElement>(null);
  const before = useRef(document.activeElement);
  useEffect(() => {
    dialog.current?.showModal();
    keep.current?.focus();
    return () => before.current instanceof HTMLElement && before.current.focus();
  }, []);
  const answer = (yes: boolean) => {
    dialog.current?.close();
    question.set(null);
    asked.answer(yes);
  };
  return (
    <dialog ref={dialog} class="confirm" aria-labelledby="confirm-title" onCancel={() => answer(false)}>
      <h2 id="confirm-title">{asked.title}</h2>
      <p>{asked.text}</p>
      <div class="buttons">
        <button type="button" ref={keep} onClick={() => answer(false)}>
          Keep
        </button>
        <button type="button" class="danger" onClick={() => answer(true)}>
          {asked.action}
        </button>
      </div>
    </dialog>
  );
}
