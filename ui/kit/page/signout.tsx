// The name of the session's token, and the button that ends the session. Without a session there is nothing to show.

import { useEffect, useState } from "preact/hooks";
import { complain } from "../parts/dialogs";
import { ask, read, signedOut, textOf } from "../data/http";

interface Caller {
  name: string;
  session: boolean;
}

export function SignOut({ session }: { session: string }) {
  const [caller, setCaller] = useState<Caller | null>(null);
  useEffect(() => {
    const controller = new AbortController();
    read<Caller>(session, controller.signal).then(setCaller, () => setCaller(null));
    return () => controller.abort();
  }, [session]);
  if (!caller?.session) return null;
  const end = async () => {
    try {
      await ask("DELETE", session);
      signedOut.set(true);
      location.reload();
    } catch (error) {
      complain(textOf(error));
    }
  };
  return (
    <button type="button" class="small" title={`Signed in with the token ${caller.name}`} onClick={() => void end()}>
      Sign out
    </button>
  );
}
