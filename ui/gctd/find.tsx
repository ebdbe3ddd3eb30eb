// The results of Ctrl+K: pages, repositories, projects, functions, tasks, and the actions of the page's keys.

import { useMemo, useState } from "preact/hooks";
import { useCell } from "../kit/data/cell";
import { read, textOf } from "../kit/data/http";
import { useLoad } from "../kit/data/load";
import { keysNow } from "../kit/page/keys";
import { type Choice, Palette } from "../kit/page/palette";
import { go } from "../kit/page/router";
import { plural, pointOf, projectName, repoName } from "./data/names";
import { analysisAt, functionAt, historyAt, repoAt, taskAt } from "./data/places";
import { useRepos } from "./data/repos";
import { scoreText } from "./data/risky";
import { SCREENS } from "./routes";
import { tasks } from "./data/tasks";

const TASKS = 200;
/** Milliseconds without another letter before the service is asked for functions. */
const PAUSE = 120;
const LONGEST = 200;
const SINGLE = /^\S$/;

const leading = (kind: string, name: string, to: string, also = ""): Choice => ({ kind, name, to, also, run: () => go(to) });

interface FoundFunctions {
  functions: readonly { id: string; repo_url: string; project: string; key: string; function: string; file: string; crap: number; state: string }[];
  searched: number;
  left_out: number;
}

/** The words that the service looks for: without the one that only names the kind. */
const searched = (text: string): string =>
  text
    .split(/\s+/)
    .filter((word) => word.length > 1 && !"function".startsWith(word.toLowerCase()))
    .join(" ");

const noFunctions: FoundFunctions = { functions: [], searched: 0, left_out: 0 };

async function functionsOf(words: string, signal: AbortSignal): Promise<FoundFunctions> {
  if (!words) return noFunctions;
  await new Promise((resolve) => setTimeout(resolve, PAUSE));
  if (signal.aborted) return noFunctions;
  return read<FoundFunctions>(`/api/functions?search=${encodeURIComponent(words.slice(0, LONGEST))}`, signal);
}

export default function Find({ close }: { close: () => void }) {
  const { repos, analyses, read: knowsRepos, error } = useRepos();
  const { order, byId, read: knowsTasks, error: taskError } = useCell(tasks);
  // the keys of the page as they were when the palette was opened
  const actions = useMemo(() => keysNow().filter(({ keys }) => SINGLE.test(keys)), []);
  const [text, setText] = useState("");
  const words = searched(text);
  const { value: found, error: functionError } = useLoad((signal) => functionsOf(words, signal), [words]);
  const choices = useMemo(
    (): readonly Choice[] => [
      ...SCREENS.filter(({ key }) => key !== undefined).map(({ title, patterns: [first = "/"] }) => leading("page", title, first)),
      ...actions.map(({ keys, does, run }): Choice => ({ kind: `action, key ${keys}`, name: does, to: null, run: () => void run() })),
      ...repos.map((repo) => leading("repository", repoName(repo.URL), repoAt(repo.ID))),
      ...analyses.flatMap(({ id, repo_info: { url }, project }) => [
        leading("latest analysis", projectName(url, project), analysisAt(id)),
        leading("history", projectName(url, project), historyAt(id)),
      ]),
      ...(found?.functions ?? []).map((one) => {
        const project = projectName(one.repo_url, one.project);
        return leading(`function of ${project}, CRAP ${scoreText(one)}`, one.function, functionAt(one.id, one.key), one.file);
      }),
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
  const functions = found?.left_out ? `Functions: ${plural(found.left_out, "project")} of ${found.searched + found.left_out} could not be searched.` : words ? "Functions of all projects are searched." : "Functions are searched as you type.";
  const note = missing.join(" ") || functions;
  return <Palette choices={choices} note={note} onText={setText} close={close} />;
}
