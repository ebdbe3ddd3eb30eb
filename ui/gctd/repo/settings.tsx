// The settings of a project or of a repository's root: the values in effect, where each is set, and the fields to change them.
// Changes that are not saved stay until they are saved or discarded, also when the page is left for another.

import { useEffect, useState } from "preact/hooks";
import { say } from "../../kit/parts/dialogs";
import { ask, Problem, read, textOf } from "../../kit/data/http";
import { useAgain, useLoad } from "../../kit/data/load";
import { ErrorPanel, Skeleton } from "../../kit/parts/states";
import { useEventsOfRepo } from "../data/repos";

type Value = string | boolean | readonly string[] | null;

interface Config {
  stored: Record<string, Value>;
  effective: Record<string, Value>;
  origin: Record<string, "project" | "root" | "default">;
}

const FIELDS: readonly { name: string; title: string; hint: string }[] = [
  { name: "ref", title: "Ref", hint: "branch, tag or full commit id" },
  { name: "test_args", title: "Flags of go test", hint: "-short -race -tags=e2e" },
  { name: "go_flags", title: "Flags of every go command", hint: "-tags=e2e" },
  { name: "crap_args", title: "Flags of the scoring", hint: "--threshold=20 --exclude=_gen.go" },
  { name: "timeout", title: "Time limit of an attempt", hint: "20m" },
  { name: "git_timeout", title: "Time limit of a git command", hint: "5m" },
  { name: "submodules", title: "Submodules", hint: "" },
  { name: "coverpkg", title: "Tests of other packages", hint: "" },
  { name: "store_source", title: "Source of functions", hint: "" },
];

/** The settings with a few values, each with its words. */
const CHOICES: Readonly<Record<string, readonly (readonly [Value, string])[]>> = {
  submodules: [
    [true, "check out"],
    [false, "leave out"],
  ],
  coverpkg: [
    [true, "count for every package"],
    [false, "count for their own package"],
  ],
  store_source: [
    ["always", "keep with each analysis"],
    ["never", "neither keep nor show"],
  ],
};

const shown = (value: Value | undefined): string => (value === null || value === undefined ? "" : value instanceof Array ? value.join(" ") : String(value));

function parsed(name: string, text: string): Value {
  const trimmed = text.trim();
  if (!trimmed) return null;
  const chosen = CHOICES[name]?.find(([value]) => String(value) === trimmed);
  if (chosen) return chosen[0];
  return name === "crap_args" ? trimmed.split(/\s+/) : trimmed;
}

/** The stored settings as texts. */
const textsOf = ({ stored }: Config): Record<string, string> => Object.fromEntries(FIELDS.map(({ name }) => [name, shown(stored[name])]));

/** Texts that are not saved, by the address of the settings: only of fields that differ from their stored value. */
const drafts = new Map<string, Record<string, string>>();

const ORIGINS = { project: "set here", root: "from the repository", default: "default" } as const;

export function Settings({ url, subdir, id }: { url: string; subdir: string; id: string }) {
  const query = new URLSearchParams(subdir ? { url, subdir } : { url });
  const address = `/api/repo-config?${query}`;
  const { value, error, reload } = useLoad((signal) => read<Config>(address, signal), [address]);
  useAgain(reload, useEventsOfRepo(url));
  const [config, setConfig] = useState<Config | null>(null);
  const [draft, setDraft] = useState<Record<string, string>>({});
  const [problems, setProblems] = useState<Record<string, string>>({});
  const [busy, setBusy] = useState(false);
  const keep = (next: Record<string, string>) => {
    drafts.set(address, next);
    setDraft(next);
  };
  const take = (next: Config, kept: Record<string, string> = {}) => {
    keep(kept);
    setConfig(next);
    setProblems({});
  };
  useEffect(() => {
    if (value) take(value, drafts.get(address));
  }, [value]);
  if (error) return <ErrorPanel error={error} retry={reload} />;
  if (!config) return <Skeleton />;
  const stored = textsOf(config);
  const texts: Record<string, string> = { ...stored, ...draft };
  const type = (name: string, text: string) => keep(Object.fromEntries(Object.entries({ ...draft, [name]: text }).filter(([each, now]) => now !== stored[each])));
  const changed = FIELDS.filter(({ name }) => (texts[name] ?? "").trim() !== stored[name]);
  const save = async (event: SubmitEvent) => {
    event.preventDefault();
    setBusy(true);
    try {
      const changes = Object.fromEntries(changed.map(({ name }) => [name, parsed(name, texts[name] ?? "")]));
      const { body } = await ask<Config>("POST", "/api/repo-config", { body: { url, ...(subdir ? { subdir } : {}), ...changes } });
      const later = Object.entries(drafts.get(address) ?? {}).filter(([name, text]) => text !== texts[name]);
      take(body, Object.fromEntries(later)); // what was typed in the meantime is not saved
      say("Saved. Tasks that are queued from now on use it.");
    } catch (reason) {
      const fields = reason instanceof Problem ? reason.fields : [];
      const found: Record<string, string> = {};
      for (const field of fields) found[(field.pointer ?? "").split("/")[1] ?? ""] = field.detail;
      setProblems(Object.keys(found).length ? found : { "": textOf(reason) });
    } finally {
      setBusy(false);
    }
  };
  return (
    <form class="settings" onSubmit={(event) => void save(event)} noValidate>
      {FIELDS.map(({ name, title, hint }) => {
        const origin = config.origin[name] ?? "default";
        const field = `${id}-${name}`;
        const note = `${field}-note`;
        const choices = CHOICES[name];
        return (
          <div key={name} class="setting">
            <label for={field}>{title}</label>
            {choices ? (
              <select id={field} aria-describedby={note} value={texts[name] ?? ""} onChange={(event) => type(name, event.currentTarget.value)}>
                <option value="">not set</option>
                {choices.map(([value, words]) => (
                  <option key={words} value={String(value)}>
                    {words}
                  </option>
                ))}
              </select>
            ) : (
              <input
                id={field}
                type="text"
                placeholder={hint}
                spellcheck={false}
                autocomplete="off"
                autocapitalize="none"
                value={texts[name] ?? ""}
                aria-invalid={problems[name] ? "true" : "false"}
                aria-describedby={note}
                onInput={(event) => type(name, event.currentTarget.value)}
              />
            )}
            <p id={note} class={problems[name] ? "bad" : "muted"}>
              {problems[name] ?? (
                <>
                  in effect: <code>{shown(config.effective[name]) || "none"}</code> ({subdir || origin === "default" ? ORIGINS[origin] : "set here"})
                </>
              )}
            </p>
          </div>
        );
      })}
      {problems[""] && (
        <p class="bad" role="alert">
          {problems[""]}
        </p>
      )}
      <p class="buttons left">
        <button type="submit" class="primary" disabled={busy || changed.length === 0}>
          Save
        </button>
        <button type="button" disabled={changed.length === 0} onClick={() => take(config)}>
          Discard
        </button>
        {changed.length > 0 && <span class="muted">not saved</span>}
      </p>
    </form>
  );
}
