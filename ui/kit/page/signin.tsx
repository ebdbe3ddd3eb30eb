// The service asks for a token: it is traded for a cookie, which no script can read.

import { useState } from "preact/hooks";
import { Cell, useCell } from "../data/cell";
import { signIn, textOf } from "../data/http";

/** Why this device was not signed in before the form was shown, for example by a code. */
export const whyNot = new Cell("");

interface Props {
  service: string;
  /** The address that takes the token. */
  session: string;
  onDone: () => void;
}

export function SignIn({ service, session, onDone }: Props) {
  const problem = useCell(whyNot);
  const [busy, setBusy] = useState(false);
  const submit = async (event: SubmitEvent) => {
    event.preventDefault();
    const form = event.currentTarget as HTMLFormElement;
    setBusy(true);
    try {
      await signIn(session, String(new FormData(form).get("token")));
      onDone();
    } catch (error) {
      whyNot.set(textOf(error));
    } finally {
      setBusy(false);
    }
  };
  return (
    <form class="page signin" onSubmit={(event) => void submit(event)}>
      <h1>Sign in</h1>
      <p class="muted">This service asks for a token. The operator creates one: token create NAME.</p>
      <input type="text" autocomplete="username" value={service} hidden readOnly aria-label="Service" />
      <label for="token">Token</label>
      <input id="token" name="token" type="password" autocomplete="current-password" required aria-describedby="signin-problem" />
      <p id="signin-problem" class="bad" role="alert">
        {problem}
      </p>
      <div class="buttons">
        <button type="submit" class="primary" disabled={busy}>
          Sign in
        </button>
      </div>
    </form>
  );
}
