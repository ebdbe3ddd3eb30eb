// A device that was opened with the address of a QR code: the code behind the `#` is traded for a session, once.
//
// The code leaves the address before anything else happens, so that neither the history nor a bookmark keeps it.

import { ask, read, signedOut, textOf } from "../../kit/data/http";
import { whyNot } from "../../kit/page/signin";
import { complain, say } from "../../kit/parts/dialogs";
import { API } from "./live";

const CODE = /^#pair=([\w.-]+)$/;

interface Caller {
  session: boolean;
}

/** Sign this device in if its address has a code. */
export async function signInByCode(): Promise<void> {
  addEventListener("hashchange", () => CODE.test(location.hash) && location.reload()); // a code for a page that is open
  const code = CODE.exec(location.hash)?.[1];
  if (!code) return;
  history.replaceState(null, "", location.pathname + location.search);
  try {
    if (await isSignedIn()) {
      say("This device is signed in already. The code was not used.");
      return;
    }
    const { body } = await ask<{ name: string }>("POST", `${API}/pairings:claim`, { body: { code } });
    signedOut.set(false);
    say(`This device is signed in: ${body.name}`);
  } catch (error) {
    if (signedOut.value) whyNot.set(textOf(error));
    else complain(textOf(error));
  }
}

async function isSignedIn(): Promise<boolean> {
  try {
    return (await read<Caller>(`${API}/session`)).session;
  } catch {
    return false; // the answer to the code gives the reason
  }
}
