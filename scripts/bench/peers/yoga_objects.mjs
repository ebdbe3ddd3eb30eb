// 100 objects with 10 objects each by GraphQL Yoga, in process: prints the processor time of each request in milliseconds.
import { createSchema, createYoga } from "graphql-yoga";

const [requests, warm] = process.argv.slice(2).map(Number);
const thing = (id, number, children) => ({ id, name: `name ${number}`, number, children });
const items = Array.from({ length: 100 }, (_, n) =>
  thing(`i${n}`, n, Array.from({ length: 10 }, (_, m) => thing(`i${n}-${m}`, m, []))),
);
const typeDefs = "type Query { items: [Thing!]! } type Thing { id: ID! name: String! number: Int! children: [Thing!]! }";
const yoga = createYoga({ logging: false, schema: createSchema({ typeDefs, resolvers: { Query: { items: () => items } } }) });
const headers = { "content-type": "application/json", accept: "application/json" };
const body = JSON.stringify({ query: "{ items { id name number children { id name number } } }" });
const spent = [];
for (let number = 0; number < warm + requests; number += 1) {
  const before = process.cpuUsage();
  const text = await (await yoga.fetch("http://127.0.0.1/graphql", { method: "POST", headers, body })).text();
  const { user, system } = process.cpuUsage(before);
  if (JSON.parse(text).data.items.length !== 100) throw new Error(text);
  if (number >= warm) spent.push((user + system) / 1000);
}
console.log(JSON.stringify(spent));
