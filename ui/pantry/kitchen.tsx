// The kitchen: find or scan a product, see its stock and low stock, book in and out, undo.

import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { ErrorBoundary } from "../kit/page/boundary";
import { useCell } from "../kit/data/cell";
import { Frame } from "../kit/page/frame";
import { useKeys } from "../kit/page/keys";
import { place, useQuery } from "../kit/page/router";
import { useMedia } from "../kit/parts/table";
import { booked, open, scanned, undo, type Mode } from "./actions";
import { Camera, hasCamera } from "./camera";
import { codeOf } from "./codes";
import { List, matching } from "./list";
import { API, stream } from "./live";
import { complain, message } from "./messages";
import { ProductPanel } from "./product";
import { products } from "./products";
import { useScanner } from "./scanner";
import { Waiting } from "./waiting";

const NARROW = "(max-width: 900px)";
const MODES: Readonly<Record<Mode, string>> = { show: "is shown", out: "goes out", in: "comes in" };

export function Kitchen() {
  return (
    <Frame service="pantry" session={`${API}/session`} stream={stream} head={<h1 class="brand">Pantry</h1>}>
      <ErrorBoundary>
        <Page />
      </ErrorBoundary>
    </Frame>
  );
}

function useMode(): [Mode, (mode: Mode) => void] {
  const [asked, setAsked] = useQuery("scan");
  return [asked === "in" || asked === "out" ? asked : "show", (mode) => setAsked(mode === "show" ? "" : mode, { replace: true })];
}

function Page() {
  const asked = useCell(place).query.get("product");
  const [mode, setMode] = useMode();
  const [typed, setTyped] = useState("");
  const ean13 = useMedia(NARROW) && typed ? null : asked; // there is room for the list or for the product there
  const undoable = useCell(booked).at(-1);
  const search = useRef<HTMLInputElement>(null);
  useScanner((digits) => {
    setTyped("");
    scanned(digits, mode);
  });
  useEffect(() => {
    if (matchMedia("(pointer: fine)").matches) search.current?.focus(); // on a phone that would open the keyboard
  }, []);
  useKeys([
    { keys: "/", does: "find", run: () => search.current?.focus() },
    { keys: "u", does: "undo what was booked last", run: () => (undoable ? undo(undoable) : false) },
  ]);
  return (
    <div class={`page full kitchen${ean13 ? " has-product" : ""}`}>
      <Find typed={typed} setTyped={setTyped} mode={mode} setMode={setMode} field={search} />
      <div>
        <Result undoable={undoable} />
        <Waiting />
      </div>
      <div class="both">
        <List typed={typed} chosen={ean13} />
        {ean13 && <ProductPanel key={ean13} ean13={ean13} />}
      </div>
    </div>
  );
}

interface FindProps {
  typed: string;
  setTyped: (text: string) => void;
  mode: Mode;
  setMode: (mode: Mode) => void;
  field: { current: HTMLInputElement | null };
}

function Find({ typed, setTyped, mode, setMode, field }: FindProps) {
  const [filming, setFilming] = useState(false);
  const list = useCell(products);
  const first = useMemo(() => matching(list, typed, false)[0], [list, typed]);
  const submit = (event: Event) => {
    event.preventDefault();
    if (codeOf(typed)) scanned(typed.trim(), mode);
    else if (typed.trim() && first) open(first.product.ean13);
    else return;
    setTyped("");
  };
  return (
    <form class="panel find" role="search" onSubmit={submit}>
      <div class="line">
        <input
          ref={field}
          type="search"
          aria-label="Name or barcode"
          placeholder="Name or barcode"
          autocomplete="off"
          autocapitalize="none"
          spellcheck={false}
          enterkeyhint="search"
          value={typed}
          onInput={(event) => setTyped(event.currentTarget.value)}
          onKeyDown={(event) => {
            if (event.key !== "Escape") return;
            event.preventDefault(); // which would also close the product
            setTyped("");
            event.currentTarget.blur();
          }}
        />
        {hasCamera() && !filming && (
          <button type="button" onClick={() => setFilming(true)}>
            Camera
          </button>
        )}
      </div>
      {filming && <Camera onCode={(digits) => scanned(digits, mode)} onProblem={complain} close={() => setFilming(false)} />}
      <fieldset>
        <legend>A scanned code</legend>
        {(Object.keys(MODES) as Mode[]).map((each) => (
          <label key={each}>
            <input type="radio" name="mode" checked={mode === each} onChange={() => setMode(each)} /> {MODES[each]}
          </label>
        ))}
      </fieldset>
    </form>
  );
}

function Result({ undoable }: { undoable: string | undefined }) {
  const now = useCell(message);
  return (
    <div class="message">
      <p role="status" class="good">
        {now?.bad ? "" : now?.text}
      </p>
      <p role="alert" class="bad">
        {now?.bad ? now.text : ""}
      </p>
      {undoable && !now?.bad && (
        <button type="button" title="Undo what was booked last (u)" onClick={() => undo(undoable)}>
          Undo
        </button>
      )}
    </div>
  );
}
