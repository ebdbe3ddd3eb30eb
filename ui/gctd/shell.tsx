// The frame of every screen: the navigation, the way to a screen's file, the page for an address that has none.

import type { ComponentChildren, FunctionComponent } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { ErrorBoundary } from "../kit/page/boundary";
import { useCell } from "../kit/data/cell";
import { complain } from "../kit/parts/dialogs";
import { Frame } from "../kit/page/frame";
import { go, Link, match, place, type Params } from "../kit/page/router";
import { Empty, Skeleton } from "../kit/parts/states";
import { useTitle } from "../kit/page/title";
import { stream } from "./data/live";
import { SCREENS } from "./routes";
import type { Screen, ScreenProps } from "./screen";

const WITH_KEY = SCREENS.filter((screen) => screen.key !== undefined);
const MAIN = WITH_KEY.filter((screen) => !screen.isOperation);
const OPERATIONS = WITH_KEY.filter((screen) => screen.isOperation);

interface Found {
  screen: Screen;
  params: Params;
}

function find(path: string): Found | null {
  for (const screen of SCREENS) {
    for (const pattern of screen.patterns) {
      const params = match(pattern, path);
      if (params) return { screen, params };
    }
  }
  return null;
}

const rootOf = (screen: Screen): string => screen.patterns[0] ?? "/";

export function Shell() {
  const { path } = useCell(place);
  const found = find(path);
  const current = found?.screen;
  const isHere = (screen: Screen) => screen === current || screen.title === current?.under;
  return (
    <Frame
      service="gctd"
      session="/api/session"
      stream={stream}
      keys={WITH_KEY.map((screen) => ({
        keys: `g ${screen.key}`,
        does: `go to ${screen.title.toLowerCase()}`,
        run: () => go(rootOf(screen)),
      }))}
      head={
        <>
          <Link to="/" class="brand">
            gctd
          </Link>
          <Navigation label="Pages" at={path}>
            {MAIN.map((screen) => (
              <Link key={screen.title} to={rootOf(screen)} aria-current={isHere(screen) ? "page" : undefined}>
                {screen.title}
              </Link>
            ))}
            <Link to={rootOf(OPERATIONS[0] as Screen)} aria-current={current?.isOperation ? "page" : undefined}>
              Operations
            </Link>
          </Navigation>
        </>
      }
      tools={<Finder />}
      below={
        current?.isOperation && (
          <Navigation label="Operations" at={path}>
            {OPERATIONS.map((screen) => (
              <Link key={screen.title} to={rootOf(screen)} aria-current={isHere(screen) ? "page" : undefined}>
                {screen.title}
              </Link>
            ))}
          </Navigation>
        )
      }
    >
      <Content found={found} />
    </Frame>
  );
}

const finding = () => import("./find");

/** The button and the key of the palette, which is read when it is first opened. */
function Finder() {
  const [Shown, setShown] = useState<FunctionComponent<{ close: () => void }> | null>(null);
  const [opened, setOpened] = useState(0);
  const times = useRef(0);
  const open = () => {
    setOpened((times.current += 1));
    finding().then(
      (module) => setShown(() => module.default),
      () => (setOpened(0), complain("The service cannot be reached.")),
    );
  };
  /** A palette that was closed reports it late: it may be open once more by then. */
  const close = () => setOpened((now) => (now === opened ? 0 : now));
  useLayoutEffect(() => {
    const listen = (event: KeyboardEvent) => {
      if (event.key.toLowerCase() !== "k" || !(event.ctrlKey || event.metaKey) || event.altKey || event.shiftKey) return;
      event.preventDefault();
      if (!document.querySelector("dialog:modal")) open();
    };
    addEventListener("keydown", listen);
    return () => removeEventListener("keydown", listen);
  }, []);
  return (
    <>
      <button type="button" class="small find" aria-keyshortcuts="Control+K" onClick={open}>
        Find <kbd>Ctrl K</kbd>
      </button>
      {opened > 0 && Shown && <Shown key={opened} close={close} />}
    </>
  );
}

/** Links side by side; the current one is scrolled into sight if there is no room for all. */
function Navigation({ label, at, children }: { label: string; at: string; children: ComponentChildren }) {
  const box = useRef<HTMLElement>(null);
  useEffect(() => {
    const element = box.current;
    const current = element?.querySelector<HTMLElement>("[aria-current]");
    if (!element || !current) return;
    element.scrollLeft = current.offsetLeft - element.offsetLeft - (element.clientWidth - current.offsetWidth) / 2;
  }, [at]);
  return (
    <nav ref={box} aria-label={label}>
      {children}
    </nav>
  );
}

const loaded = new Map<Screen, FunctionComponent<ScreenProps>>();

function Content({ found }: { found: Found | null }) {
  const [turn, again] = useState(0);
  const [failed, setFailed] = useState<Screen | null>(null);
  const screen = found?.screen ?? null;
  const shown = useRef<Screen | null>(screen);
  const reload = () => again((count) => count + 1);
  useTitle(screen ? screen.title : "No such page");
  useEffect(() => {
    setFailed(null);
    if (shown.current !== screen) document.getElementById("main")?.focus(); // a screen reader announces the new page
    shown.current = screen;
    if (!screen || loaded.has(screen)) return;
    let isCurrent = true;
    screen.load().then(
      (module) => {
        loaded.set(screen, module.default);
        if (isCurrent) reload();
      },
      () => isCurrent && setFailed(screen),
    );
    return () => {
      isCurrent = false;
    };
  }, [screen, turn]);
  if (!found) return <NoSuchPage />;
  const Screen = loaded.get(found.screen);
  if (!Screen && failed === screen) return <NotRead screen={found.screen} retry={reload} />;
  if (!Screen) return <Skeleton />;
  return (
    <ErrorBoundary key={found.screen.title}>
      <Screen params={found.params} />
    </ErrorBoundary>
  );
}

function NoSuchPage() {
  return (
    <div class="page">
      <h1>No such page</h1>
      <p>
        Nothing is at <code>{place.value.path}</code>. The address may be cut, or the page may have been removed.
      </p>
      <ul class="plain-list">
        {WITH_KEY.map((screen) => (
          <li key={screen.title}>
            <Link to={rootOf(screen)}>{screen.title}</Link>
          </li>
        ))}
      </ul>
    </div>
  );
}

const AGAIN = 2_000;

/** The file of a screen cannot be read: it is retried when the service can be reached, and now and then. */
function NotRead({ screen, retry }: { screen: Screen; retry: () => void }) {
  const { kind } = useCell(stream.state);
  useEffect(() => {
    if (kind === "live") retry();
    const timer = setInterval(retry, AGAIN);
    return () => clearInterval(timer);
  }, [kind]);
  return (
    <div class="page">
      <h1>{screen.title}</h1>
      <Empty title="This page cannot be read now">
        <p role="status">The service cannot be reached. The page opens by itself when the service answers again.</p>
        <button type="button" onClick={retry}>
          Try again
        </button>
      </Empty>
    </div>
  );
}
