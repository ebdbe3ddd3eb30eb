// `{ hello }` by GraphQL Yoga: node yoga.mjs PORT GREETING.
import { createServer } from "node:http";
import { createSchema, createYoga } from "graphql-yoga";

const [port, greeting] = process.argv.slice(2);
const schema = createSchema({ typeDefs: "type Query { hello: String }", resolvers: { Query: { hello: () => greeting } } });
createServer(createYoga({ logging: false, graphqlEndpoint: "/function/*", schema })).listen(Number(port), "127.0.0.1");
