// What is around every screen: navigation, how fresh the page is, help, sign-in.

import type { FunctionComponent } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { useCell } from "../kit/cell";
import { Dialogs } from "../kit/dialogs";
import { ErrorBoundary } from "../kit/boundary";
import { Help } from "../kit/help";
import { signedOut } from "../kit/http";
import { useKeys } from "../kit/keys";
import { LiveSign } from "../kit/livesign";
import { go, Link, match, place, type Params } from "../kit/router";
import { SignIn } from "../kit/signin";
import { ErrorPanel, Skeleton } from "../kit/states";
import { nextTheme, theme } from "../kit/theme";
import { stream } from "./live";
import { SCREENS, type Screen, type ScreenProps } from "./routes";

const IN_NAVIGATION = SCREENS.filter((screen) => screen.key !== undefined);

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
  const isSignedOut = useCell(signedOut);
  const [help, setHelp] = useState(false);
  const isStale = useCell(stream.state).kind === "stale";
  useKeys([
    { keys: "?", does: "this help", run: () => setHelp(true) },
    { keys: "t", does: "light, dark, as the system", run: nextTheme },
    ...IN_NAVIGATION.map((screen) => ({
      keys: `g ${screen.key}`,
      does: `go to ${screen.title.toLowerCase()}`,
      run: () => go(rootOf(screen)),
    })),
  ]);
  return (
    <div class={`shell${isStale ? " is-stale" : ""}`}>
      <a class="skip" href="#main">
        Skip to content
      </a>
      <header class="top">
        <Link to="/" class="brand">
          gctd
        </Link>
        <nav aria-label="Screens">
          {IN_NAVIGATION.map((screen) => (
            <Link key={screen.title} to={rootOf(screen)} aria-current={found?.screen === screen ? "page" : undefined}>
              {screen.title}
            </Link>
          ))}
        </nav>
        <div class="tools">
          <LiveSign stream={stream} />
          <button type="button" class="icon" aria-label="Keyboard help" title="Keyboard help (?)" onClick={() => setHelp(true)}>
            ?
          </button>
          <ThemeButton />
        </div>
      </header>
      <main id="main" tabIndex={-1}>
        {isSignedOut ? <SignIn service="gctd" onDone={() => location.reload()} /> : <Content found={found} />}
      </main>
      {help && <Help close={() => setHelp(false)} />}
      <Dialogs />
    </div>
  );
}

const THEMES = { system: ["◐", "as the system"], light: ["☼", "light"], dark: ["☾", "dark"] } as const;

function ThemeButton() {
  const [icon, name] = THEMES[useCell(theme)];
  return (
    <button type="button" class="icon" aria-label={`Colours: ${name}`} title={`Colours: ${name} (t)`} onClick={nextTheme}>
      {icon}
    </button>
  );
}

const loaded = new Map<Screen, FunctionComponent<ScreenProps>>();

function Content({ found }: { found: Found | null }) {
  const [, again] = useState(0);
  const [error, setError] = useState<unknown>(null);
  const screen = found?.screen ?? null;
  const shown = useRef<Screen | null>(screen);
  useEffect(() => {
    setError(null);
    document.title = screen ? `${screen.title} · gctd` : "gctd";
    if (shown.current !== screen) document.getElementById("main")?.focus(); // who reads with a screen reader is told
    shown.current = screen;
    if (!screen || loaded.has(screen)) return;
    let isCurrent = true;
    screen.load().then(
      (module) => {
        loaded.set(screen, module.default);
        if (isCurrent) again((count) => count + 1);
      },
      (reason) => isCurrent && setError(reason),
    );
    return () => {
      isCurrent = false;
    };
  }, [screen]);
  if (!found) {
    return (
      <div class="page">
        <h1>Nothing here</h1>
        <p>
          There is no such page. <Link to="/">To the start</Link>
        </p>
      </div>
    );
  }
  if (error) return <ErrorPanel error={error} retry={() => location.reload()} />;
  const Screen = loaded.get(found.screen);
  if (!Screen) return <Skeleton />;
  return (
    <ErrorBoundary key={found.screen.title}>
      <Screen params={found.params} />
    </ErrorBoundary>
  );
}
