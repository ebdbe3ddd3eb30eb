// What is around every page: its head, how fresh it is, help, colours, sign-in, what is asked and said.

import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { useCell } from "./cell";
import { Dialogs } from "./dialogs";
import { Help } from "./help";
import { signedOut } from "./http";
import { useKeys, type Key } from "./keys";
import type { Stream } from "./live";
import { LiveSign } from "./livesign";
import { SignIn } from "./signin";
import { nextTheme, theme } from "./theme";

interface Props {
  service: string;
  /** The address that takes the token, where the service asks for one. */
  session: string;
  stream: Stream;
  /** Keys that hold everywhere on the page, beside those of the frame. */
  keys?: readonly Key[];
  /** At the left of the head: the name, the navigation. */
  head: ComponentChildren;
  children: ComponentChildren;
}

export function Frame({ service, session, stream, keys = [], head, children }: Props) {
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
          <LiveSign stream={stream} />
          <button type="button" class="icon" aria-label="Keyboard help" title="Keyboard help (?)" onClick={() => setHelp(true)}>
            ?
          </button>
          <ThemeButton />
        </div>
      </header>
      <main id="main" tabIndex={-1}>
        {isSignedOut ? <SignIn service={service} session={session} onDone={() => location.reload()} /> : children}
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
