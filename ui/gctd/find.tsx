// The results of Ctrl+K: pages, repositories, projects, their worst functions, tasks, and the actions of the page's keys.

import { useMemo } from "preact/hooks";
import { useCell } from "../kit/data/cell";
import { read, textOf } from "../kit/data/http";
import { useAgain, useLoad } from "../kit/data/load";
import { keysNow } from "../kit/page/keys";
import { type Choice, Palette } from "../kit/page/palette";
import { go } from "../kit/page/router";
import type { Whole } from "./analysis/types";
import { pointOf, projectName, repoName } from "./data/names";
import { analysisAt, functionAt, historyAt, repoAt, taskAt } from "./data/places";
import { useRepos } from "./data/repos";
import { scoreText } from "./data/risky";
import { SCREENS } from "./routes";
import { tasks } from "./data/tasks";
import type { Analysis } from "./data/types";

const PROJECTS = 20;
const FUNCTIONS = 200;
const TASKS = 200;
const SINGLE = /^\S$/;

const leading = (kind: string, name: string, to: string, also = ""): Choice => ({ kind, name, to, also, run: () => go(to) });

/** Functions that were read, by the task of their analysis. */
const functions = new Map<string, readonly Choice[]>();

async function functionsOf(analysis: Analysis, signal: AbortSignal): Promise<readonly Choice[]> {
  const known = functions.get(analysis.task_id);
  if (known) return known;
  const { entries } = await read<Whole>(`/api/repos/${analysis.id}?entries=${FUNCTIONS}`, signal);
  const name = projectName(analysis.repo_info.url, analysis.project);
  const made = entries.map((entry) =>
    leading(`function of ${name}, CRAP ${scoreText(entry)}`, entry.function, functionAt(analysis.id, entry.key), entry.file),
  );
  functions.set(analysis.task_id, made);
  return made;
}

const allFunctions = async (analyses: readonly Analysis[], signal: AbortSignal): Promise<readonly Choice[]> =>
  (await Promise.all(analyses.slice(0, PROJECTS).map((analysis) => functionsOf(analysis, signal)))).flat();

export default function Find({ close }: { close: () => void }) {
  const { repos, analyses, read: knowsRepos, error } = useRepos();
  const { order, byId, read: knowsTasks, error: taskError } = useCell(tasks);
  // the keys of the page as they were when the palette was opened
  const actions = useMemo(() => keysNow().filter(({ keys }) => SINGLE.test(keys)), []);
  const version = analyses.map((analysis) => analysis.task_id).join(" ");
  const { value: found, error: functionError, reload } = useLoad((signal) => allFunctions(analyses, signal), []);
  useAgain(reload, version);
  const choices = useMemo(
    (): readonly Choice[] => [
      ...SCREENS.filter(({ key }) => key !== undefined).map(({ title, patterns: [first = "/"] }) => leading("page", title, first)),
      ...actions.map(({ keys, does, run }): Choice => ({ kind: `action, key ${keys}`, name: does, to: null, run: () => void run() })),
      ...repos.map((repo) => leading("repository", repoName(repo.URL), repoAt(repo.ID))),
      ...analyses.flatMap(({ id, repo_info: { url }, project }) => [
        leading("latest analysis", projectName(url, project), analysisAt(id)),
        leading("history", projectName(url, project), historyAt(id)),
      ]),
      ...(found ?? []),
      ...order.slice(0, TASKS).flatMap((id) => {
        const task = byId.get(id)?.task;
        return task ? [leading(`task, ${task.status}, ${pointOf(task)}`, projectName(task.repo_url, task.project), taskAt(id), `${id} ${task.commit_sha ?? ""}`)] : [];
      }),
    ],
    [actions, repos, analyses, found, order, byId],
  );
  const missing = [
    ...(error ? [`Repositories could not be read: ${textOf(error)}.`] : knowsRepos ? [] : ["Repositories are not read yet."]),
    ...(taskError ? [`Tasks could not be read: ${textOf(taskError)}.`] : knowsTasks ? [] : ["Tasks are not read yet."]),
    ...(functionError ? [`Functions could not be read: ${textOf(functionError)}.`] : []),
  ];
  const note = missing.join(" ") || `Functions: the ${FUNCTIONS} with the highest values of each project${analyses.length > PROJECTS ? `, of ${PROJECTS} of ${analyses.length} projects` : ""}.`;
  return <Palette choices={choices} note={note} close={close} />;
}
