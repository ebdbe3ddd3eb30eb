// The scores of tasks: the history of a project is read once, page by page, and a task that it does not have is not asked for again.

import assert from "node:assert/strict";
import { test } from "node:test";
import { asked, json, service, settled } from "./browser.ts";
import { scoreOf, scores } from "../gctd/data/scores";
import type { Task } from "../gctd/data/types";

const task = (id: string, analysis = "one"): Task => ({ id, analysis_id: analysis, status: "completed" }) as Task;
const point = (id: string, average: number) => ({ task_id: id, measured: { average } });

test("an old score is read page by page, with one reading for all tasks of a project", async () => {
  service.answer = ({ path }) => (path.includes("cursor") ? json([point("task-1", 4)]) : json([point("task-2", 5)], 200, { Link: '</api/x?cursor=2>; rel="next"' }));
  for (const id of ["task-2", "task-1"]) assert.equal(scoreOf(task(id)), undefined);
  await settled();
  assert.deepEqual(["task-1", "task-2"].map((id) => scoreOf(task(id))?.average), [4, 5]);
  assert.equal(asked.length, 2);
});

test("a task that no history has is looked for once, however often it is drawn", async () => {
  asked.length = 0;
  service.answer = () => json([]);
  const stop = scores.follow(() => scoreOf(task("task-9", "two")));
  for (let turn = 0; turn < 5; turn += 1) {
    assert.equal(scoreOf(task("task-9", "two")), undefined);
    await settled();
  }
  stop();
  assert.equal(asked.length, 1);
});

test("a task that has not completed has no score, and the service gets no request", () => {
  asked.length = 0;
  assert.equal(scoreOf({ ...task("task-3"), status: "failed" } as Task), undefined);
  assert.equal(asked.length, 0);
});
