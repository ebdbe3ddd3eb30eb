// The form for a new repository: faults are shown before it is sent. The first analysis follows by itself.

import { useState } from "preact/hooks";
import { say } from "../../kit/parts/dialogs";
import { ask, Problem, textOf } from "../../kit/data/http";
import { go } from "../../kit/page/router";
import { canonical, problemOf } from "../data/address";
import { repoName } from "../data/names";
import { repoAt } from "../data/places";
import { outdated } from "../data/repos";
import type { Repo } from "../data/types";

interface Props {
  input?: { current: HTMLInputElement | null };
  title?: string;
  action?: string;
}

export function Register({ input, title = "Add a repository", action = "Analyse" }: Props) {
  const [text, setText] = useState("");
  const [left, setLeft] = useState(false);
  const [refused, setRefused] = useState("");
  const [busy, setBusy] = useState(false);
  const problem = problemOf(text);
  const shown = refused || (left || busy ? (problem ?? "") : "");
  const submit = async (event: SubmitEvent) => {
    event.preventDefault();
    setLeft(true);
    if (!text.trim() || problem) return;
    setBusy(true);
    try {
      const { body: repo } = await ask<Repo>("POST", "/api/repos", { body: { repo_url: text.trim() } });
      const isNew = repo.Status === "registering";
      say(isNew ? `${repoName(repo.URL)} is registered: a worker looks for its Go projects.` : `${repoName(repo.URL)} is registered already.`);
      setText("");
      setLeft(false);
      outdated(0);
      go(`${repoAt(repo.ID)}${isNew ? "?analyse=first" : ""}`);
    } catch (error) {
      setRefused(error instanceof Problem && error.fields[0] ? `The address ${error.fields[0].detail}.` : textOf(error));
    } finally {
      setBusy(false);
    }
  };
  return (
    <form class="register panel" onSubmit={(event) => void submit(event)} noValidate>
      <label for="address">{title}</label>
      <div class="toolbar">
        <input
          {...(input ? { ref: input } : {})}
          id="address"
          type="text"
          inputMode="url"
          autocomplete="off"
          autocapitalize="none"
          spellcheck={false}
          placeholder="https://github.com/owner/name"
          value={text}
          aria-invalid={shown ? "true" : "false"}
          aria-describedby="address-note"
          onInput={(event) => {
            setText(event.currentTarget.value);
            setRefused("");
          }}
          onBlur={() => setLeft(true)}
        />
        <button type="submit" class="primary" disabled={busy}>
          {action}
        </button>
      </div>
      <p id="address-note" class={shown ? "bad" : "muted"} role="status">
        {shown || (text && !problem ? `Will be known as ${canonical(text)}` : "A worker clones it, finds its Go modules, runs their tests and scores every function.")}
      </p>
    </form>
  );
}

