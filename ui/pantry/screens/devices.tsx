// Devices: a QR code signs a phone in, and the sessions of this token are listed, each with its end.

import { useState } from "preact/hooks";
import { ask, read, textOf } from "../../kit/data/http";
import { useEvery, useLoad } from "../../kit/data/load";
import { confirm } from "../../kit/parts/dialogs";
import { Empty, ErrorPanel, Skeleton } from "../../kit/parts/states";
import { useNow } from "../../kit/parts/time";
import { API } from "../data/live";

type Scope = "read" | "write" | "admin";

interface Session {
  id: string;
  name: string;
  scope?: Scope;
  opened_at: string;
  expires_at: string;
  current: boolean;
}

interface Code {
  link: string;
  qr: readonly string[];
  id?: string;
  expires_at?: string;
  warning?: string;
}

interface Caller {
  name: string;
  scope: Scope;
}

/** The limit of pantry/http/devices.py. */
const NAME_LENGTH = 64;
/** Light modules around a QR code. */
const MARGIN = 4;
const LOOK_AGAIN = 3_000;
const RIGHTS: Readonly<Record<Scope, string>> = { read: "only look", write: "book and change", admin: "everything" };
const ORDER = Object.keys(RIGHTS) as Scope[];

/** The address of this page for a device, unless it is an address of this machine: then the service knows a better one, or none. */
const ownAddress = () => (/^(localhost|127\.|\[::1\])/.test(location.hostname) ? {} : { address: location.origin + location.pathname });

export function Devices() {
  const caller = useLoad((signal) => read<Caller>(`${API}/session`, signal), []);
  const sessions = useLoad((signal) => read<Session[]>(`${API}/sessions`, signal), []);
  useEvery(LOOK_AGAIN, sessions.reload);
  const failed = caller.error ?? (sessions.value ? null : sessions.error);
  if (failed) return <ErrorPanel error={failed} retry={caller.reload} />;
  if (!caller.value || !sessions.value) return <Skeleton />;
  return (
    <>
      <Pair scope={caller.value.scope} sessions={sessions.value} />
      <section class="panel" aria-labelledby="sessions-title">
        <h2 id="sessions-title">Signed in{caller.value.name && ` with ${caller.value.name}`}</h2>
        {sessions.value.length === 0 && <Empty title="No device is signed in" />}
        <ul class="changes">
          {sessions.value.map((session) => (
            <One key={session.id} session={session} done={sessions.reload} />
          ))}
        </ul>
      </section>
    </>
  );
}

function Pair({ scope, sessions }: { scope: Scope; sessions: readonly Session[] }) {
  const [name, setName] = useState("phone");
  const allowed = ORDER.slice(0, ORDER.indexOf(scope) + 1);
  const [rights, setRights] = useState<Scope>(allowed.includes("write") ? "write" : "read");
  const [code, setCode] = useState<Code | null>(null);
  const [problem, setProblem] = useState("");
  const submit = (event: SubmitEvent) => {
    event.preventDefault();
    setProblem("");
    ask<Code>("POST", `${API}/pairings`, { body: { name: name.trim(), scope: rights, ...ownAddress() } }).then(
      ({ body }) => setCode(body),
      (error) => {
        setCode(null);
        setProblem(textOf(error));
      },
    );
  };
  return (
    <section class="panel create" aria-labelledby="devices-title">
      <h2 id="devices-title">Devices</h2>
      <p>A phone that scans the code opens this page, and is signed in.</p>
      <form class="line wrap" onSubmit={submit}>
        <label>
          Name <input required pattern=".*\S.*" maxLength={NAME_LENGTH} autocomplete="off" value={name} onInput={(event) => setName(event.currentTarget.value)} />
        </label>
        <label>
          May{" "}
          <select value={rights} onChange={(event) => setRights(event.currentTarget.value as Scope)}>
            {allowed.map((each) => (
              <option key={each} value={each}>
                {RIGHTS[each]}
              </option>
            ))}
          </select>
        </label>
        <button type="submit" class="primary">
          Show code
        </button>
      </form>
      <p class="bad" role="alert">
        {problem || code?.warning}
      </p>
      {code && <Shown code={code} used={sessions.some(({ id }) => id === code.id)} />}
    </section>
  );
}

/** The code, until it is used or has expired. */
function Shown({ code, used }: { code: Code; used: boolean }) {
  const left = code.expires_at === undefined ? Infinity : Date.parse(code.expires_at) - useNow();
  if (used) return <p class="good" role="status">The device is signed in.</p>;
  if (left <= 0) return <p role="status">The code has expired.</p>;
  const size = code.qr.length + 2 * MARGIN;
  const dark = code.qr.flatMap((row, y) => [...row].map((module, x) => (module === "1" ? `M${x + MARGIN} ${y + MARGIN}h1v1h-1z` : "")));
  return (
    <>
      <svg class="qr" viewBox={`0 0 ${size} ${size}`} role="img" aria-label="QR code" shape-rendering="crispEdges">
        <path class="light" d={`M0 0h${size}v${size}h-${size}z`} />
        <path d={dark.join("")} />
      </svg>
      <p role="status">
        {left === Infinity ? "The code is the address of the page: this pantry asks for no token." : `It signs one device in, within ${Math.ceil(left / 60_000)} min.`}
      </p>
    </>
  );
}

function One({ session: { id, name, scope, opened_at, expires_at, current }, done }: { session: Session; done: () => void }) {
  const [problem, setProblem] = useState("");
  const title = name || "browser";
  const end = async () => {
    if (!(await confirm({ title: `End the session of ${title}?`, text: "The device has to sign in again.", action: "End" }))) return;
    try {
      await ask("DELETE", `${API}/sessions/${id}`);
      if (current) location.reload();
      done();
    } catch (error) {
      setProblem(textOf(error));
    }
  };
  return (
    <li>
      <span>
        {title}{" "}
        <span class="muted">
          {[current && "this device", scope && `may ${RIGHTS[scope]}`, `since ${day(opened_at)}`, `until ${day(expires_at)}`].filter(Boolean).join(", ")}
        </span>{" "}
        <span class="bad" role="alert">
          {problem}
        </span>
      </span>
      <button type="button" aria-label={`End ${title}`} onClick={() => void end()}>
        End
      </button>
    </li>
  );
}

const day = (at: string): string => new Date(at).toLocaleDateString();
