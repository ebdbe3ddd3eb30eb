// A repository that is open: its projects as a tree, each with its result, whether its ref moved, and its settings.

import { useState } from "preact/hooks";
import { complain, say } from "../../kit/dialogs";
import { Drawer } from "../../kit/drawer";
import { ask, textOf } from "../../kit/http";
import { Pill } from "../../kit/pill";
import { Link, useQuery } from "../../kit/router";
import { Copy, Empty } from "../../kit/states";
import { Ago } from "../../kit/time";
import { analyse } from "../actions";
import { plural, repoName, score, shortCommit } from "../names";
import { outdated } from "../repos";
import type { Analysis, Project, Repo } from "../types";
import { Settings } from "./settings";

interface Update {
  project: string | null;
  ref: string | null;
  recorded_sha: string | null;
  remote_sha: string | null;
  moved: boolean;
  note: string | null;
  error: string | null;
}

const LONG = 160_000;

export function RepoDrawer({ repo, analyses, close }: { repo: Repo | null; analyses: readonly Analysis[]; close: () => void }) {
  const [updates, setUpdates] = useState<readonly Update[] | null>(null);
  const [checking, setChecking] = useState(false);
  const [chosen, choose] = useQuery("project");
  if (!repo) {
    return (
      <Drawer title="Repository" close={close}>
        <Empty title="There is no such repository" />
      </Drawer>
    );
  }
  const rescan = async () => {
    try {
      await ask("POST", "/api/repos?refresh=true", { body: { repo_url: repo.URL } });
      say(`A worker looks for the projects of ${repoName(repo.URL)} again.`);
      outdated(0);
    } catch (error) {
      complain(textOf(error));
    }
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
  const isReady = repo.Status === "ready";
  const { projects } = repo.Profile;
  return (
    <Drawer title={repoName(repo.URL)} close={close}>
      <section aria-label="Repository">
        <p class="line">
          <Pill state={repo.Status} />
          {repo.ProfiledAt && (
            <span class="muted">
              looked at <Ago at={repo.ProfiledAt} /> ago
            </span>
          )}
        </p>
        {repo.StatusReason && <p class="reason">{repo.StatusReason}</p>}
        <dl class="facts">
          <dt>Address</dt>
          <dd>
            <code>{repo.URL}</code>
          </dd>
          {repo.CommitSHA && (
            <>
              <dt>Branch</dt>
              <dd>
                <code>{repo.DefaultRef}</code> <code class="muted">{shortCommit(repo.CommitSHA)}</code>
              </dd>
            </>
          )}
        </dl>
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
        </p>
        {updates?.some((update) => update.project === null) && <p class="muted">{updates[0]?.error ?? updates[0]?.note}</p>}
      </section>
      <section aria-labelledby="projects-title">
        <h3 id="projects-title">{projects.length ? plural(projects.length, "project") : "Projects"}</h3>
        {projects.length === 0 && <p class="muted">{repo.Status === "registering" ? "A worker looks for them." : "None is known."}</p>}
        <ul class="tree">
          {projects.map((project) => (
            <ProjectNode
              key={project.name}
              repo={repo}
              project={project}
              analysis={analyses.find((each) => each.project === project.name)}
              update={updates?.find((each) => each.project === project.name)}
              isOpen={chosen === project.name}
              toggle={() => choose(chosen === project.name ? "" : project.name)}
            />
          ))}
        </ul>
      </section>
      <section aria-labelledby="root-title">
        <h3 id="root-title">Settings for all projects</h3>
        <Settings url={repo.URL} subdir="" id="root" />
      </section>
    </Drawer>
  );
}

interface NodeProps {
  repo: Repo;
  project: Project;
  analysis: Analysis | undefined;
  update: Update | undefined;
  isOpen: boolean;
  toggle: () => void;
}

const depthOf = (name: string): number => (name === "." ? 0 : name.split("/").length - 1);

function ProjectNode({ repo, project, analysis, update, isOpen, toggle }: NodeProps) {
  const about = [
    plural(project.packages, "package"),
    project.go_version && `go ${project.go_version}`,
    project.in_workspace && "in the workspace",
    !project.has_tests && "no tests",
  ].filter(Boolean);
  return (
    <li style={{ paddingInlineStart: `${depthOf(project.name) * 16}px` }}>
      <div class="node">
        <div class="what">
          <strong>{project.name === "." ? "root" : project.name}</strong> <code class="muted">{project.module_path}</code>
          <br />
          <span class="muted">{about.join(", ")}</span>
        </div>
        <div class="right">
          {analysis ? (
            <Link to={`/tasks/${analysis.task_id}`} title="the latest analysis">
              CRAP {score(analysis.summary.average)}
            </Link>
          ) : (
            <span class="muted">not analysed</span>
          )}
          {analysis && (
            <>
              <br />
              <span class="muted">
                {analysis.summary.exceeded} of {plural(analysis.summary.total_funcs, "function")} over
              </span>
            </>
          )}
        </div>
      </div>
      {project.problem && <p class="reason">{project.problem}</p>}
      {update && <Moved update={update} />}
      <p class="buttons left">
        <button type="button" class="small" disabled={repo.Status !== "ready"} aria-label={`Analyse ${project.name}`} onClick={() => void analyse(repo.URL, project.name)}>
          Analyse
        </button>
        {project.name !== "." && ( // those of the root are the repository's own, below
          <button type="button" class="small" aria-expanded={isOpen} aria-label={`Settings of ${project.name}`} onClick={toggle}>
            Settings
          </button>
        )}
      </p>
      {isOpen && project.name !== "." && <Settings url={repo.URL} subdir={project.name} id={`p-${project.name}`} />}
    </li>
  );
}

function Moved({ update }: { update: Update }) {
  if (update.error) return <p class="bad">{update.error}</p>;
  return (
    <p>
      {update.moved ? <Pill state="queued" word="moved" /> : <Pill state="ready" word="not moved" />} <code>{update.ref}</code> leads to <code>{shortCommit(update.remote_sha ?? "")}</code>
      {update.moved && <span class="muted">, analysed was {update.recorded_sha ? <code>{shortCommit(update.recorded_sha)}</code> : "nothing yet"}</span>}
    </p>
  );
}
