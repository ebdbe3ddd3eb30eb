// The frame of every page: its head, its freshness, help, colours, sign-in, questions and messages.

import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { useCell } from "../data/cell";
import { Dialogs } from "../parts/dialogs";
import { Help } from "./help";
import { signedOut } from "../data/http";
import { useKeys, type Key } from "./keys";
import type { Stream } from "../data/live";
import { LiveSign } from "./livesign";
import { SignIn } from "./signin";
import { SignOut } from "./signout";
import { nextTheme, theme } from "./theme";

interface Props {
  service: string;
  /** The address that takes the token, where the service asks for one. */
  session: string;
  stream: Stream;
  /** Keys for the whole page, in addition to the keys of the frame. */
  keys?: readonly Key[];
  /** At the left of the head: the name, the navigation. */
  head: ComponentChildren;
  /** A line under the head: the pages of a group. */
  below?: ComponentChildren;
  /** Before the tools at the right of the head. */
  tools?: ComponentChildren;
  children: ComponentChildren;
}

export function Frame({ service, session, stream, keys = [], head, below, tools, children }: Props) {
  const isSignedOut = useCell(signedOut);
  const [help, setHelp] = useState(false);
  const isStale = useCell(stream.state).kind === "stale";
  useKeys([
    { keys: "?", does: "this help", run: () => setHelp(true) },
    { keys: "t", does: "light, dark, as the system", run: nextTheme },
    ...keys,
  ]);
  return (
    <div class={`shell${isStale ? " is-stale" : ""}`}>
      <a class="skip" href="#main">
        Skip to content
      </a>
      <header class="top">
        {head}
        <div class="tools">
          {tools}
          <LiveSign stream={stream} />
          <button type="button" class="icon" aria-label="Keyboard help" title="Keyboard help (?)" onClick={() => setHelp(true)}>
            ?
          </button>
          <SignOut session={session} />
          <ThemeButton />
        </div>
      </header>
      {below && <div class="below">{below}</div>}
      <main id="main" tabIndex={-1}>
        {isSignedOut ? <SignIn service={service} session={session} onDone={() => location.reload()} /> : children}
      </main>
      {help && <Help close={() => setHelp(false)} />}
      <Dialogs />
    </div>
  );
}

const THEMES = { system: ["◐", "as the system"], light: ["☼", "light"], dark: ["☾", "dark"] } as const;

/** The button that changes the colours. */
export function ThemeButton() {
  const [icon, name] = THEMES[useCell(theme)];
  return (
    <button type="button" class="icon" aria-label={`Colours: ${name}`} title={`Colours: ${name} (t)`} onClick={nextTheme}>
      {icon}
    </button>
  );
}
