// A field that finds pages, things and actions by some of their letters, and goes there: Ctrl+K.

import { useEffect, useMemo, useRef, useState } from "preact/hooks";

export interface Choice {
  /** The kind of a choice: `page`, `repository`. */
  kind: string;
  name: string;
  /** Further words that find it. */
  also?: string;
  /** Its address; null: `run` does it. */
  to: string | null;
  run: () => void;
}

const MOST = 30;

/** How well a text fits (the smaller, the better); null if it does not. All words have to be in it. */
export function fit(text: string, words: readonly string[]): number | null {
  const all = text.toLowerCase();
  let sum = 0;
  for (const word of words) {
    const at = all.indexOf(word);
    if (at < 0) return null;
    sum += (at === 0 || /\W/.test(all[at - 1] ?? "") ? 0 : 50) + Math.min(at, 40);
  }
  return sum;
}

/** The same name in the same case is best, then in another case, then the one with the fewest other letters. */
function nearness(name: string, text: string): number {
  return name === text ? -200 : name.toLowerCase() === text.toLowerCase() ? -100 : name.length / 100;
}

function found(choices: readonly Choice[], text: string): Choice[] {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  const rated = choices.flatMap((choice, index) => {
    const rank = fit(`${choice.name} ${choice.kind} ${choice.also ?? ""}`, words);
    return rank === null ? [] : [{ choice, index, rank: words.length ? rank + nearness(choice.name, text.trim()) : 0 }];
  });
  return rated
    .sort((a, b) => a.rank - b.rank || a.index - b.index)
    .slice(0, MOST)
    .map(({ choice }) => choice);
}

interface Props {
  choices: readonly Choice[];
  /** The results that the choices do not have. */
  note?: string;
  /** Called with the text as it is typed. */
  onText?: (text: string) => void;
  close: () => void;
}

export function Palette({ choices, note, onText, close }: Props) {
  const dialog = useRef<HTMLDialogElement>(null);
  const list = useRef<HTMLUListElement>(null);
  const [text, setText] = useState("");
  const [current, setCurrent] = useState(0);
  const shown = useMemo(() => found(choices, text), [choices, text]);
  const active = Math.min(current, shown.length - 1);
  useEffect(() => dialog.current?.showModal(), []);
  useEffect(() => list.current?.children[active]?.scrollIntoView({ block: "nearest" }), [active, shown]);
  const take = (choice: Choice | undefined, inNewTab = false) => {
    if (!choice) return;
    dialog.current?.close();
    if (inNewTab && choice.to) window.open(choice.to, "_blank", "noopener");
    else choice.run();
  };
  const keys = (event: KeyboardEvent) => {
    const last = shown.length - 1;
    if (event.key === "ArrowDown") setCurrent(active >= last ? 0 : active + 1);
    else if (event.key === "ArrowUp") setCurrent(active <= 0 ? last : active - 1);
    else if (event.key === "Enter") take(shown[active], event.ctrlKey || event.metaKey);
    else return;
    event.preventDefault();
  };
  return (
    <dialog ref={dialog} class="palette" aria-label="Go to" onClose={close} onClick={(event) => event.target === dialog.current && dialog.current?.close()}>
      <div class="palette-box">
        <input
          type="text"
          role="combobox"
          aria-label="Go to a page, a repository, a function, a task, or do something"
          aria-expanded="true"
          aria-controls="palette-list"
          {...(shown[active] ? { "aria-activedescendant": `palette-${active}` } : {})}
          placeholder="repository, function, task, page, action"
          value={text}
          spellcheck={false}
          autocomplete="off"
          autocapitalize="none"
          onInput={(event) => (setText(event.currentTarget.value), setCurrent(0), onText?.(event.currentTarget.value))}
          onKeyDown={keys}
        />
        <ul ref={list} id="palette-list" role="listbox" aria-label="Found">
          {shown.map((choice, index) => (
            <li key={`${choice.kind} ${choice.name} ${choice.to}`} id={`palette-${index}`} role="option" aria-selected={index === active} onClick={(event) => take(choice, event.ctrlKey || event.metaKey)}>
              <span class="name">{choice.name}</span> <span class="muted">{choice.kind}</span>
            </li>
          ))}
        </ul>
        <p class="muted" role="status">
          {shown.length === 0 ? "Nothing matches." : ""} {note}
        </p>
      </div>
    </dialog>
  );
}
