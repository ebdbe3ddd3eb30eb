// The kitchen: find or scan a product, see its stock and low stock, book in and out, undo.

import type { JSX } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { ErrorBoundary } from "../kit/page/boundary";
import { useCell } from "../kit/data/cell";
import { Frame } from "../kit/page/frame";
import { useKeys } from "../kit/page/keys";
import { Link, place, useQuery, withQuery } from "../kit/page/router";
import { useMedia } from "../kit/parts/table";
import { Ago } from "../kit/parts/time";
import { booked, open, scanned, scannedInStocktake, undo, type Booked, type Mode } from "./actions";
import { Camera, hasCamera, Photo } from "./camera/camera";
import { codeOf } from "./codes/codes";
import { List, matching } from "./list";
import { API, stream } from "./data/live";
import { complain, complaints, dismiss, result } from "./data/messages";
import { ProductPanel } from "./product";
import { products } from "./data/products";
import { useScanner } from "./codes/scanner";
import { NewVersion } from "./offline/version";
import { Categories } from "./screens/categories";
import { Devices } from "./screens/devices";
import { History } from "./screens/history";
import { Import } from "./screens/import";
import { Shopping } from "./screens/shopping";
import { countScanned, Stocktake } from "./screens/stocktake";
import { Waiting } from "./waiting";

interface View {
  title: string;
  Screen?: () => JSX.Element;
}

const VIEWS: Readonly<Record<string, View>> = {
  "": { title: "Stock" },
  shopping: { title: "Shopping", Screen: Shopping },
  stocktake: { title: "Stocktake", Screen: Stocktake },
  history: { title: "History", Screen: History },
  categories: { title: "Categories", Screen: Categories },
  import: { title: "Import", Screen: Import },
  devices: { title: "Devices", Screen: Devices },
};
const NARROW = "(max-width: 900px)";
const MODES: Readonly<Record<Mode, string>> = { show: "is shown", out: "goes out", in: "comes in" };

export function Kitchen() {
  return (
    <Frame service="pantry" session={`${API}/session`} stream={stream} head={<h1 class="brand">Pantry</h1>} below={<Navigation />}>
      <ErrorBoundary>
        <Page />
      </ErrorBoundary>
    </Frame>
  );
}

function Navigation() {
  const [view] = useQuery("view");
  return (
    <nav aria-label="Pages">
      {Object.entries(VIEWS).map(([name, { title }]) => (
        <Link key={name} to={withQuery({ view: name, product: null, pack: null, only: null, at: null, of: null })} {...(name === view ? { "aria-current": "page" } : {})}>
          {title}
        </Link>
      ))}
    </nav>
  );
}

function useMode(): [Mode, (mode: Mode) => void] {
  const [asked, setAsked] = useQuery("scan");
  return [asked === "in" || asked === "out" ? asked : "show", (mode) => setAsked(mode === "show" ? "" : mode, { replace: true })];
}

function Page() {
  const asked = useCell(place).query.get("product");
  const [mode, setMode] = useMode();
  const [view] = useQuery("view");
  const Screen = VIEWS[view]?.Screen;
  const [typed, setTyped] = useState("");
  const ean13 = useMedia(NARROW) && typed ? null : asked; // there is room for the list or for the product there
  const undoable = useCell(booked).at(-1);
  const search = useRef<HTMLInputElement>(null);
  useScanner((code) => {
    setTyped("");
    if (Screen === Stocktake) scannedInStocktake(code, countScanned);
    else scanned(code, mode);
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
        <NewVersion />
        <Result undoable={undoable} />
        <Waiting />
      </div>
      {Screen && !ean13 ? (
        <div class="screen">
          <ErrorBoundary key={view}>
            <Screen />
          </ErrorBoundary>
        </div>
      ) : (
        <div class="both">
          <List typed={typed} chosen={ean13} />
          {ean13 && <ProductPanel key={ean13} ean13={ean13} />}
        </div>
      )}
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
        <Photo onCode={(code) => scanned(code, mode)} onProblem={complain} />
      </div>
      {filming && <Camera onCode={(code) => scanned(code, mode)} onProblem={complain} close={() => setFilming(false)} />}
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

function Result({ undoable }: { undoable: Booked | undefined }) {
  const text = useCell(result);
  const failed = useCell(complaints);
  return (
    <>
      <div class="message">
        <p role="status" class="good">
          {text}
        </p>
        {undoable && (
          <button type="button" title={`Undo ${undoable.text} (u)`} onClick={() => undo(undoable)}>
            Undo
          </button>
        )}
      </div>
      <div role="alert">
        {failed.length > 0 && (
          <section class="panel refused" aria-label="Problems">
            <ul class="changes">
              {failed.map(({ id, text, at }) => (
                <li key={id}>
                  <span>
                    <span class="bad">{text}</span>
                    <span class="muted">
                      {" "}
                      <Ago at={new Date(at).toISOString()} />
                    </span>
                  </span>
                  <button type="button" aria-label={`Dismiss ${text}`} onClick={() => dismiss(id)}>
                    Dismiss
                  </button>
                </li>
              ))}
            </ul>
          </section>
        )}
      </div>
    </>
  );
}
