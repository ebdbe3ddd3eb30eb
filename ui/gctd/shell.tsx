// What is around every screen: the navigation, in the frame of all pages.

import type { FunctionComponent } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { useCell } from "../kit/cell";
import { ErrorBoundary } from "../kit/boundary";
import { Frame } from "../kit/frame";
import { go, Link, match, place, type Params } from "../kit/router";
import { ErrorPanel, Skeleton } from "../kit/states";
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
  return (
    <Frame
      service="gctd"
      session="/api/session"
      stream={stream}
      keys={IN_NAVIGATION.map((screen) => ({
        keys: `g ${screen.key}`,
        does: `go to ${screen.title.toLowerCase()}`,
        run: () => go(rootOf(screen)),
      }))}
      head={
        <>
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
        </>
      }
    >
      <Content found={found} />
    </Frame>
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
