// Runs the server audit of graphql-http against the address that is its argument; prints a JSON list, one object for each audit.
import { serverAudits } from "graphql-http";

const results = [];
for (const audit of serverAudits({ url: process.argv[2], fetchFn: fetch })) {
  const { id, name, status, reason } = await audit.fn();
  results.push({ id, name, status, reason: reason ?? null });
}
console.log(JSON.stringify(results));
