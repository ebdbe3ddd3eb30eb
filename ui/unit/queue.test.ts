// Changes that wait: the order of sending, the answers after which they wait, and a second try.

import assert from "node:assert/strict";
import { beforeEach, mock, test } from "node:test";
import { asked, json, service, settled } from "./browser.ts";
import { again, drop, isDone, put, queue, startQueue } from "../pantry/data/queue";

mock.timers.enable({ apis: ["setTimeout"] });
await startQueue(() => {});

beforeEach(async () => {
  service.answer = () => json({});
  mock.timers.tick(60_000);
  await settled();
  for (const change of [...queue.value.waiting, ...queue.value.refused]) await drop(change);
  asked.length = 0;
});

const book = (ean13: string, quantity = 1) => put(ean13, "/movements", { ean13, quantity }, `${ean13}: ${quantity} out`);
const sent = (): unknown[] => asked.map(({ body }) => (body as { ean13: string; quantity: number }).quantity);

test("changes are sent in their order, each with its own key", async () => {
  for (const quantity of [1, 2, 3]) await book("flour", quantity);
  await settled();
  assert.deepEqual(sent(), [1, 2, 3]);
  assert.equal(new Set(asked.map(({ headers }) => headers["Idempotency-Key"])).size, 3);
  assert.deepEqual(queue.value.waiting, []);
});

test("a refused change is kept with its reason, and the next ones are sent", async () => {
  service.answer = ({ body }) => ((body as { quantity: number }).quantity === 9 ? json({ error: "insufficient stock" }, 422) : json({}));
  const changes = [await book("flour", 9), await book("flour", 1)];
  await settled();
  assert.deepEqual(queue.value.refused.map(({ refusal }) => refusal), ["insufficient stock"]);
  assert.deepEqual(changes.map(isDone), [false, true]);
});

test("without a network all wait, and are sent in their order when there is one", async () => {
  service.answer = () => Promise.reject(new TypeError("no network"));
  for (const [code, quantity] of [["flour", 1], ["milk", 2], ["flour", 3]] as const) await book(code, quantity);
  await settled();
  assert.equal(queue.value.waiting.length, 3);
  assert.equal(queue.value.problem, "The service cannot be reached.");
  service.answer = () => json({});
  asked.length = 0;
  dispatchEvent(new Event("online"));
  await settled();
  assert.deepEqual(sent(), [1, 2, 3]);
});

test("a change whose result is open holds up the changes of its product only", async () => {
  service.answer = ({ body }) => ((body as { ean13: string }).ean13 === "flour" ? json({ error: "late" }, 503) : json({}));
  for (const [code, quantity] of [["flour", 1], ["milk", 2], ["flour", 3]] as const) await book(code, quantity);
  await settled();
  assert.deepEqual(queue.value.waiting.map(({ text }) => text), ["flour: 1 out", "flour: 3 out"]);
  assert(!sent().includes(3));
});

test("a change is sent again under its key", async () => {
  service.answer = () => json({ error: "late" }, 503);
  await book("flour");
  await settled();
  service.answer = () => json({});
  mock.timers.tick(60_000);
  await settled();
  assert.deepEqual(queue.value.waiting, []);
  assert.equal(new Set(asked.map(({ headers }) => headers["Idempotency-Key"])).size, 1);
});

test("a refused change is tried again once, also at a double click, and under another key", async () => {
  service.answer = () => json({ error: "insufficient stock" }, 422);
  await book("flour");
  await settled();
  const [refused] = queue.value.refused;
  assert(refused);
  service.answer = () => json({});
  await Promise.all([again(refused), again(refused)]);
  await settled();
  assert.equal(asked.length, 2);
  assert.equal(new Set(asked.map(({ headers }) => headers["Idempotency-Key"])).size, 2);
  assert.deepEqual([queue.value.waiting, queue.value.refused], [[], []]);
});

test("a change that was sent cannot be taken back while its result is open", async () => {
  service.answer = () => Promise.reject(new TypeError("no network"));
  const [first, second] = [await book("flour", 1), await book("flour", 2)];
  await settled();
  await drop(first);
  await drop(second);
  assert.deepEqual(queue.value.waiting.map(({ text }) => text), ["flour: 1 out"]);
});
