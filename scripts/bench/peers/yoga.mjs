// `{ hello }`, and a pantry's products from its tables in SQLite, by GraphQL Yoga: node yoga.mjs PORT GREETING [DATABASE STATEMENTS].
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import { DatabaseSync } from "node:sqlite";
import DataLoader from "dataloader";
import { createSchema, createYoga } from "graphql-yoga";

const [port, greeting, file, statements] = process.argv.slice(2);
const prepared = {};
if (file !== undefined) {
  const database = new DatabaseSync(file, { readOnly: true });
  const sql = JSON.parse(readFileSync(statements, "utf8"));
  for (const [name, text] of Object.entries(sql)) prepared[name] = database.prepare(text);
}
const one = (name, key, ...given) =>
  new DataLoader(async (keys) => {
    const found = new Map(prepared[name].all(JSON.stringify(keys), ...given).map((row) => [row[key], row]));
    return keys.map((value) => found.get(value) ?? null);
  });
const movementsOf = (first) =>
  new DataLoader(async (codes) => {
    const found = new Map(codes.map((code) => [code, []]));
    for (const row of prepared.movements.all(JSON.stringify(codes), first)) found.get(row.product_ean13).push(row);
    return codes.map((code) => found.get(code));
  });

class Loaders {
  made = new Map();

  get(name, make) {
    if (!this.made.has(name)) this.made.set(name, make());
    return this.made.get(name);
  }
}

const typeDefs = `
type Query { hello: String products(first: Int!): Products! }
type Products { nodes: [Product!]! }
type Product { name: String! quantity: String! category: Category quantityAt(time: String!): String! movements(first: Int!): Movements! }
type Category { name: String! }
type Movements { nodes: [Movement!]! }
type Movement { kind: String! amount: String! createdAt: String! product: Product! }
`;
const resolvers = {
  Query: { hello: () => greeting, products: (_, { first }) => ({ nodes: prepared.products.all(first) }) },
  Product: {
    quantity: (row) => String(row.current_stock / 1000),
    category: (row, _, { loaders }) =>
      row.category_id === null ? null : loaders.get("category", () => one("categories", "id")).load(row.category_id),
    quantityAt: async (row, { time }, { loaders }) => {
      const found = await loaders.get(`stock ${time}`, () => one("stocks", "ean13", time)).load(row.ean13);
      return found === null ? "0" : String(found.stock_after / 1000);
    },
    movements: async (row, { first }, { loaders }) => ({
      nodes: await loaders.get(`movements ${first}`, () => movementsOf(first)).load(row.ean13),
    }),
  },
  Movement: {
    kind: (row) => row.type.toUpperCase(),
    amount: (row) => String(row.quantity / 1000),
    createdAt: (row) => row.created_at,
    product: (row, _, { loaders }) => loaders.get("product", () => one("products_by_code", "ean13")).load(row.product_ean13),
  },
};
const yoga = createYoga({
  logging: false,
  graphqlEndpoint: "/function/*",
  schema: createSchema({ typeDefs, resolvers }),
  context: () => ({ loaders: new Loaders() }),
});
createServer(yoga).listen(Number(port), "127.0.0.1");
