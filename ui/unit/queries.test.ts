// Queries of GraphQL: which are subscriptions, their usual form, their titles, and a subscription that resumes.

import assert from "node:assert/strict";
import { mock, test } from "node:test";
import { asked, json, service, settled } from "./browser.ts";
import { formatted } from "../graphql/format";
import { follow, isSubscription, type Result } from "../graphql/requests";
import { titleOf } from "../graphql/tabs";

for (const text of ["subscription { changed }", "# first\nsubscription Named($a: Int) { changed(a: $a) }", "{ hello } subscription S { changed }"]) {
  test(`a subscription is found in ${JSON.stringify(text)}`, () => assert(isSubscription(text)));
}

for (const text of [
  "query subscription { hello }",
  "{ hello } # }\n# subscription { hello }",
  "fragment subscription on Query { hello } { ...subscription }",
  '{ search(text: "} subscription { x }") }',
]) {
  test(`no subscription is found in ${JSON.stringify(text)}`, () => assert(!isSubscription(text)));
}

test("the usual form keeps comments before the selection that they precede", () => {
  const ragged = "# first\nquery Named($a:Int=1,  $b:String){hello   @include(if:true) # at the end\n ...F, again:hello # last\n} fragment F on Query{hello}";
  assert.deepEqual(formatted(ragged).split("\n"), [
    "# first",
    "query Named($a: Int = 1, $b: String) {",
    "  hello @include(if: true)",
    "  # at the end",
    "  ...F",
    "  again: hello",
    "  # last",
    "}",
    "",
    "fragment F on Query {",
    "  hello",
    "}",
    "",
  ]);
});

test("a text in its usual form stays", () => {
  const text = "# about\n{\n  products(first: 3, text: \"a\") {\n    nodes {\n      name\n    }\n  }\n}\n";
  assert.equal(formatted(text), text);
});

test("a text with an error of syntax has no usual form", () => assert.throws(() => formatted("{ hello"), /Expected Name/));

test("the title is of the first operation, else of the first field", () => {
  assert.deepEqual(["query Named { a }", "# query No\n{ hello }", "{ other: hello }", ""].map(titleOf), ["Named", "hello", "hello", "empty"]);
});

test("a subscription over a silent connection is resumed after its last event", async () => {
  mock.timers.enable({ apis: ["setTimeout"] });
  asked.length = 0;
  service.answer = ({ headers, signal }) => {
    const isFirst = headers["Last-Event-ID"] === undefined;
    const event = isFirst ? 'id: 7\nevent: next\ndata: {"data": {"changed": 1}}\n\n' : "event: complete\n\n";
    const start = (stream: ReadableStreamDefaultController) => {
      stream.enqueue(new TextEncoder().encode(event));
      signal?.addEventListener("abort", () => stream.error(signal.reason));
    };
    return new Response(new ReadableStream({ start }), { headers: { "Content-Type": "text/event-stream" } });
  };
  const seen: Result[] = [];
  let cuts = 0;
  const done = follow("graphql", { query: "subscription { changed }" }, {}, new AbortController().signal, { open: () => {}, next: (result) => seen.push(result), cut: () => (cuts += 1) });
  await settled();
  mock.timers.tick(39_000);
  await settled();
  assert.deepEqual([asked.length, cuts], [1, 0]);
  mock.timers.tick(2_000);
  for (let turn = 0; turn < 5; turn += 1) await settled();
  assert.equal(cuts, 1);
  mock.timers.tick(2_000);
  for (let turn = 0; turn < 5; turn += 1) await settled();
  await done;
  assert.deepEqual(asked.map(({ headers }) => headers["Last-Event-ID"]), [undefined, "7"]);
  assert.deepEqual(seen, [{ data: { changed: 1 } }]);
  mock.timers.reset();
});

test("a refused subscription is not tried again", async () => {
  service.answer = () => json({ errors: [{ message: "no such field" }] }, 400);
  await assert.rejects(follow("graphql", { query: "subscription { no }" }, {}, new AbortController().signal, { open: () => {}, next: () => {}, cut: () => {} }), /no such field/);
});
