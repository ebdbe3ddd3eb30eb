// The live task list: the tasks once, then every change as it happens.

const ICONS = { pending: "○", queued: "◷", running: "◐", completed: "✓", failed: "✕", expired: "⧗" };
const MOST = 200;

const tasks = new Map();
const body = document.querySelector("#tasks tbody");
const live = document.querySelector("#live");

function cell(text, name) {
  const element = document.createElement("td");
  element.textContent = text;
  if (name) element.className = name;
  return element;
}

function projectName(task) {
  // Of a local repository the folder's own name says enough; the rest is in the title.
  const repo = task.repo_url.startsWith("file:") ? task.repo_url.split("/").at(-1) : task.repo_url.replace(/^\w+:\/\//, "");
  return task.project === "." ? repo : `${repo} · ${task.project}`;
}

function row(task) {
  const element = document.createElement("tr");
  const status = cell(`${ICONS[task.status]} ${task.status}`, task.status);
  status.title = task.reason;
  const project = cell(projectName(task));
  project.title = task.repo_url;
  const when = cell(new Date(task.updated_at).toLocaleTimeString());
  when.title = task.updated_at;
  element.append(
    status,
    project,
    cell(task.ref),
    cell(`${task.attempt}/${task.max_attempts}`),
    cell(task.status === "running" ? task.stage : task.status === "failed" || task.status === "expired" ? task.reason : "", "wide"),
    cell(task.worker),
    when,
  );
  return element;
}

const compare = (a, b) => (a < b ? -1 : a > b ? 1 : 0);

let drawing = false;
function draw() {
  if (drawing) return;
  drawing = true;
  requestAnimationFrame(() => {
    drawing = false;
    const shown = [...tasks.values()].filter((task) => !task.hidden && !task.seen && !task.deleted);
    shown.sort((a, b) => compare(b.created_at, a.created_at) || compare(a.id, b.id));
    body.replaceChildren(...shown.slice(0, MOST).map(row));
    document.querySelector("#tasks").hidden = shown.length === 0;
    document.querySelector("#empty").hidden = shown.length !== 0;
  });
}

async function read(path) {
  const answer = await fetch(path, { headers: { Accept: "application/json" } });
  const document = await answer.json();
  if (!answer.ok) throw new Error(document.message ?? answer.statusText);
  return document;
}

function problem(error) {
  const element = document.querySelector("#problem");
  element.textContent = error ? String(error.message ?? error) : "";
  element.hidden = !error;
}

async function refresh() {
  const known = await read(`/api/tasks?limit=${MOST}`);
  const before = new Map(tasks);
  tasks.clear();
  for (const task of known) {
    const other = before.get(task.id);
    // An event that came while the list was read may be newer than the list.
    tasks.set(task.id, other && other.updated_at > task.updated_at ? other : task);
  }
  draw();
}

function state(text, name) {
  live.textContent = text;
  live.className = name;
}

function listen() {
  const source = new EventSource("/api/sse");
  source.addEventListener("open", () => {
    state("live", "on");
    refresh().then(() => problem(null), problem);
  });
  source.addEventListener("error", () => state(`stale since ${new Date().toLocaleTimeString()}, reconnecting`, "stale"));
  source.addEventListener("task", (event) => {
    const task = JSON.parse(event.data);
    tasks.set(task.id, task);
    draw();
  });
  source.addEventListener("stage", (event) => {
    const stage = JSON.parse(event.data);
    const task = tasks.get(stage.id);
    if (task) {
      tasks.set(stage.id, { ...task, stage: stage.stage });
      draw();
    }
  });
  source.addEventListener("reset", () => refresh().catch(problem));
}

listen();
