// A repository: its projects with their scores, as they are measured. Next steps. Its tasks and settings.

import { useEffect, useState } from "preact/hooks";
import { Crumbs } from "../../kit/page/crumbs";
import { complain, say } from "../../kit/parts/dialogs";
import { ask, textOf } from "../../kit/data/http";
import { Pill } from "../../kit/parts/pill";
import { go, Link, useQuery, withQuery } from "../../kit/page/router";
import { Command, Copy, Empty, ErrorPanel, Skeleton } from "../../kit/parts/states";
import { Ago } from "../../kit/parts/time";
import { useTitle } from "../../kit/page/title";
import { analyse, analyseFirst, analyseOnce, removeRepo } from "../data/actions";
import { plural, repoName, shortCommit } from "../data/names";
import { analysisAt, historyAt } from "../data/places";
import { ProjectNode, RecentTasks, type Update, useTasksOf } from "../repo/project";
import { outdated, useEventsOfRepo, useRepos } from "../data/repos";
import type { ScreenProps } from "../screen";
import type { Analysis, Repo } from "../data/types";
import { Settings } from "../repo/settings";

const LONG = 160_000;
/** Limit of the projects with their worst functions: each is a request. */
const DETAILED = 3;

export default function Repository({ params }: ScreenProps) {
  const id = params["id"] ?? "";
  const { repos, analyses, read, error } = useRepos();
  const repo = repos.find((each) => each.ID === id);
  if (!repo) {
    return (
      <div class="page">
        <Crumbs above={[{ name: "Repositories", to: "/repos" }]} here="Repository" />
        <h1>Repository</h1>
        {error ? <ErrorPanel error={error} retry={() => outdated(0)} /> : read ? <Empty title="There is no such repository" /> : <Skeleton lines={6} />}
      </div>
    );
  }
  return <Shown key={id} repo={repo} error={error} analyses={analyses.filter((each) => each.repo_id === id)} />;
}

function Shown({ repo, error, analyses }: { repo: Repo; error: unknown; analyses: readonly Analysis[] }) {
  const version = `${useEventsOfRepo(repo.URL)} ${analyses.map((each) => each.task_id).join(" ")}`;
  const [checked, setChecked] = useState<{ version: string; updates: readonly Update[] } | null>(null);
  const updates = checked?.version === version ? checked.updates : null; // a check is about the settings and analyses of its time
  const [chosen, choose] = useQuery("project");
  const name = repoName(repo.URL);
  const { projects } = repo.Profile;
  useTitle(`${useTested(repo.URL)}${name}`, 1);
  useFirstAnalysis(repo);
  return (
    <div class="page repository">
      <Crumbs above={[{ name: "Repositories", to: "/repos" }]} here={name} />
      <header class="page-head">
        <div>
          <h1>{name}</h1>
          <p class="line muted">
            <Pill state={repo.Status} />
            {repo.ProfiledAt && (
              <span>
                projects found at <code>{repo.DefaultRef}</code> <code>{shortCommit(repo.CommitSHA)}</code> <Ago at={repo.ProfiledAt} /> ago
              </span>
            )}
            <code>{repo.URL}</code>
          </p>
        </div>
        <Actions repo={repo} setUpdates={(found) => setChecked({ version, updates: found })} />
      </header>
      {error ? <ErrorPanel error={error} retry={() => outdated(0)} /> : null}
      {repo.StatusReason && <p class="reason">{repo.StatusReason}</p>}
      {updates?.some((update) => update.project === null) && <p class="muted">{updates[0]?.error ?? updates[0]?.note}</p>}
      <div class="columns wide-left">
        <section class="panel" aria-labelledby="projects-title">
          <h2 id="projects-title">{projects.length ? plural(projects.length, "project") : "Projects"}</h2>
          {projects.length === 0 && (
            <p class="muted" role="status">
              {repo.Status === "registering" ? "A worker looks for the Go modules of the repository. They appear here." : "No project is known."}
            </p>
          )}
          <ul class="tree">
            {projects.map((project, index) => (
              <ProjectNode
                key={project.name}
                repo={repo}
                project={project}
                analysis={analyses.find((each) => each.project === project.name)}
                update={updates?.find((each) => each.project === project.name)}
                isDetailed={index < DETAILED}
                isOpen={chosen === project.name}
                toggle={() => choose(chosen === project.name ? "" : project.name)}
              />
            ))}
          </ul>
        </section>
        <div>
          {analyses.length > 0 && <NextSteps analyses={analyses} />}
          <section class="panel" aria-label="Tasks">
            <h2>Latest tasks</h2>
            <RecentTasks url={repo.URL} />
          </section>
          <section class="panel" aria-labelledby="root-title">
            <h2 id="root-title">Settings for all projects</h2>
            <Settings url={repo.URL} subdir="" id="root" />
          </section>
        </div>
      </div>
    </div>
  );
}

/** `(9/15) `: packages tested by the running tasks, for the title of a page that waits in another tab. */
function useTested(url: string): string {
  const running = useTasksOf(url).flatMap(({ status, stage, progress }) => (status === "running" && stage === "test" && progress ? [progress] : []));
  const sum = (part: "done" | "total") => running.reduce((all, progress) => all + progress[part], 0);
  return running.length ? `(${sum("done")}/${sum("total")}) ` : "";
}

/** With `?analyse=first` the projects are analysed as soon as they are known, once however often the page is opened. */
function useFirstAnalysis(repo: Repo): void {
  const [wanted] = useQuery("analyse");
  useEffect(() => {
    if (wanted !== "first" || repo.Status !== "ready") return;
    go(withQuery({ analyse: null }), { replace: true });
    void analyseFirst(repo);
  }, [wanted, repo.Status]);
}

function Actions({ repo, setUpdates }: { repo: Repo; setUpdates: (updates: readonly Update[]) => void }) {
  const [checking, setChecking] = useState(false);
  const isReady = repo.Status === "ready";
  const rescan = async () => {
    try {
      await ask("POST", "/api/repos?refresh=true", { body: { repo_url: repo.URL } });
      say(`A worker looks for the projects of ${repoName(repo.URL)} again.`);
      outdated(0);
    } catch (error) {
      complain(textOf(error));
    }
  };
  const remove = async () => {
    if (!(await removeRepo(repo))) return;
    go("/repos", { replace: true });
    outdated(0);
  };
  const check = async () => {
    setChecking(true);
    try {
      setUpdates((await ask<Update[]>("POST", "/api/repos/check-updates", { body: { repo_url: repo.URL }, patience: LONG })).body);
    } catch (error) {
      complain(textOf(error));
    } finally {
      setChecking(false);
    }
  };
  return (
    <div class="repo-actions no-print">
      <p class="buttons left">
        <button type="button" class="primary" disabled={!isReady} onClick={() => void analyse(repo.URL, null)}>
          Analyse all
        </button>
        <button type="button" disabled={!isReady || checking} onClick={() => void check()}>
          {checking ? "Checking…" : "Check for updates"}
        </button>
        <button type="button" disabled={repo.Status === "registering"} onClick={() => void rescan()}>
          Find projects again
        </button>
        <Copy text={repo.URL} what="address" />
        <button type="button" class="danger" onClick={() => void remove()}>
          Remove
        </button>
      </p>
      {isReady && <AnotherRef repo={repo} />}
    </div>
  );
}

/** Another branch, tag or commit, for one analysis: the setting stays as it is. */
function AnotherRef({ repo }: { repo: Repo }) {
  const [ref, setRef] = useState("");
  const submit = async (event: SubmitEvent) => {
    event.preventDefault();
    if (ref.trim() && (await analyseOnce(repo.URL, ref.trim()))) setRef("");
  };
  return (
    <form class="line" onSubmit={(event) => void submit(event)} noValidate>
      <label class="line">
        Another ref
        <input type="text" placeholder="branch, tag or commit" value={ref} spellcheck={false} autocomplete="off" autocapitalize="none" onInput={(event) => setRef(event.currentTarget.value)} />
      </label>
      <button type="submit" disabled={!ref.trim()}>
        Analyse once
      </button>
    </form>
  );
}

/** The next steps after a first analysis. */
function NextSteps({ analyses }: { analyses: readonly Analysis[] }) {
  const [worst] = [...analyses].sort((a, b) => b.measured.average - a.measured.average);
  if (!worst) return null;
  return (
    <section class="panel" aria-label="Next steps">
      <h2>Next steps</h2>
      <ul class="plain-list">
        <li>
          <Link to={analysisAt(worst.id)}>See the risky functions</Link> <span class="muted">and the coverage that helps</span>
        </li>
        <li>
          <Link to={historyAt(worst.id)}>Compare two analyses</Link> <span class="muted">function by function</span>
        </li>
        <li>
          <Link to={`${analysisAt(worst.id)}#gate`}>Set the limits of the gate</Link> <span class="muted">for a build</span>
        </li>
        <li>
          <Link to={`${analysisAt(worst.id)}#exports`}>Add the badge</Link> <span class="muted">to a README</span>
        </li>
        <li>
          Analyse each new commit, from a timer:
          <Command text="gctd repo check-updates --schedule" />
        </li>
      </ul>
    </section>
  );
}
