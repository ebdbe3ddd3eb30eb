// Runs clients of GraphQL with their defaults against the function whose address is the argument; prints their findings as JSON.
import { readFileSync } from "node:fs";

import { ApolloClient, HttpLink, InMemoryCache, gql } from "@apollo/client";
import { CombinedGraphQLErrors } from "@apollo/client/errors";
import { codegen } from "@graphql-codegen/core";
import * as typescript from "@graphql-codegen/typescript";
import * as operations from "@graphql-codegen/typescript-operations";
import { Client, cacheExchange, fetchExchange, gql as urqlGql } from "@urql/core";
import { parse } from "graphql";
import { ClientError, request } from "graphql-request";
import { createClient } from "graphql-sse";
import Relay from "relay-runtime";

const url = process.argv[2];
const PRODUCTS = `query Products($first: Int!, $after: String) {
  products(first: $first, after: $after) { edges { cursor node { ...Stock } } pageInfo { hasNextPage endCursor } totalCount }
}
fragment Stock on Product { id name quantity category { id name } movements(first: 1) { nodes { id kind amount } } }`;
const WRONG = "{ products(first: 1001) { totalCount } }";
const CHANGES = "subscription { stockChanged { product { id quantity } movement { id } } }";
const names = (connection) => connection.edges.map((edge) => edge.node.name);

async function apollo() {
  const client = new ApolloClient({ link: new HttpLink({ uri: url }), cache: new InMemoryCache() });
  const query = gql(PRODUCTS);
  const first = await client.query({ query, variables: { first: 2 } });
  const after = first.data.products.pageInfo.endCursor;
  const second = await client.query({ query, variables: { first: 2, after } });
  const past = await client.query({
    query: gql(`query($code: String!, $at: DateTime!) {
      now: product(ean13: $code) { id quantity } then: product(ean13: $code, asOf: $at) { id quantity } }`),
    variables: { code: first.data.products.edges[0].node.id.split(":")[1], at: new Date().toISOString() },
  });
  const cached = client.readFragment({
    id: client.cache.identify(first.data.products.edges[0].node),
    fragment: gql("fragment F on Product { name }"),
  });
  const failed = await client.query({ query: gql(WRONG) }).catch((error) => error);
  return {
    names: [...names(first.data.products), ...names(second.data.products)],
    total: first.data.products.totalCount,
    cached: cached.name,
    ids: [past.data.now.id, past.data.then.id],
    code: CombinedGraphQLErrors.is(failed) ? failed.errors[0].extensions.code : String(failed),
  };
}

async function urql() {
  const client = new Client({ url, exchanges: [cacheExchange, fetchExchange], fetchSubscriptions: true, preferGetMethod: false });
  const query = urqlGql(PRODUCTS);
  const first = await client.query(query, { first: 2 }).toPromise();
  const second = await client.query(query, { first: 2, after: first.data.products.pageInfo.endCursor }).toPromise();
  const failed = await client.query(urqlGql(WRONG), {}).toPromise();
  const change = await new Promise((resolve, reject) => {
    const { unsubscribe } = client.subscription(urqlGql(CHANGES), {}).subscribe((result) => {
      if (result.error) reject(result.error);
      else if (result.data) {
        resolve(result.data.stockChanged.product.id);
        queueMicrotask(unsubscribe);
      }
    });
  });
  return {
    names: [...names(first.data.products), ...names(second.data.products)],
    code: failed.error.graphQLErrors[0].extensions.code,
    change,
  };
}

async function graphqlRequest() {
  const first = await request(url, PRODUCTS, { first: 4 });
  const failed = await request(url, WRONG).catch((error) => error);
  return { names: names(first.products), code: failed instanceof ClientError ? failed.response.errors[0].extensions.code : String(failed) };
}

async function sse() {
  const client = createClient({ url, retryAttempts: 0 });
  const results = (query, count) =>
    new Promise((resolve, reject) => {
      const found = [];
      const stop = client.subscribe(
        { query },
        {
          next: (result) => {
            if (found.length < count) found.push(result.data ?? result.errors[0].extensions.code); // more may be on their way
            if (found.length === count) stop();
          },
          error: reject,
          complete: () => resolve(found),
        },
      );
    });
  const [changes, again, once, wrong] = await Promise.all([
    results(CHANGES, 3),
    results(CHANGES, 2),
    results("{ products { totalCount } }", 2),
    results(WRONG, 2),
  ]);
  client.dispose();
  return { changes: changes.length, again: again.length, total: once[0].products.totalCount, code: wrong[0] };
}

async function resumed() {
  const read = async (count, last) => {
    const abort = new AbortController();
    const headers = { Accept: "text/event-stream", "Content-Type": "application/json", ...(last && { "Last-Event-ID": last }) };
    const answer = await fetch(url, { method: "POST", headers, body: JSON.stringify({ query: CHANGES }), signal: abort.signal });
    let text = "";
    const events = [];
    for await (const chunk of answer.body.pipeThrough(new TextDecoderStream())) {
      text += chunk;
      const blocks = text.split("\n\n");
      text = blocks.pop();
      for (const block of blocks) {
        const id = /^id: (.*)$/m.exec(block)?.[1];
        const data = /^data: (.*)$/m.exec(block)?.[1];
        if (data) events.push({ id, movement: JSON.parse(data).data.stockChanged.movement.id });
      }
      if (events.length >= count) break;
    }
    abort.abort();
    return events;
  };
  const all = await read(3);
  const rest = await read(2, all[0].id);
  return { all: all.map((one) => one.movement), rest: rest.slice(0, 2).map((one) => one.movement) };
}

async function relay() {
  const { Environment, Network, RecordSource, Store, fetchQuery, getSelector } = Relay;
  const load = async (name) => (await import(`./relay/__generated__/${name}.graphql.js`)).default;
  const network = Network.create(async (params, variables) => {
    const headers = { "Content-Type": "application/json", Accept: "application/graphql-response+json" };
    return (await fetch(url, { method: "POST", headers, body: JSON.stringify({ query: params.text, variables }) })).json();
  });
  const environment = new Environment({ network, store: new Store(new RecordSource()) });
  const [query, paged, fragment] = await Promise.all(["categoryQuery", "categoryPaginationQuery", "category_products"].map(load));
  const page = (owner) => environment.lookup(getSelector(fragment, owner)).data.products;
  const start = await fetchQuery(environment, query, {}).toPromise();
  const [owner] = start.categories.nodes;
  const first = page(owner);
  const cursor = first.pageInfo.endCursor;
  await fetchQuery(environment, paged, { id: owner.id, count: 2, cursor }).toPromise();
  const second = page(owner);
  return { first: names(first), all: names(second) };
}

async function generated() {
  const schema = parse(readFileSync(new URL("./pantry.graphql", import.meta.url), "utf8"));
  const text = await codegen({
    filename: "types.ts",
    schema,
    documents: [{ location: "products.graphql", document: parse(PRODUCTS) }],
    config: {},
    plugins: [{ typescript: {} }, { operations: {} }],
    pluginMap: { typescript, operations },
  });
  return { hasQuery: text.includes("export type ProductsQuery"), hasDecimal: text.includes("Decimal") };
}

const found = {};
for (const [name, run] of Object.entries({
  apollo,
  urql,
  graphqlRequest,
  sse,
  resumed,
  relay,
  generated,
})) {
  try {
    found[name] = await run();
  } catch (error) {
    found[name] = { failed: String(error.stack ?? error) };
  }
}
console.log(JSON.stringify(found));
process.exit(0);
