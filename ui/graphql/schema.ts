// The schema of a function, by introspection.

import { buildClientSchema, getIntrospectionQuery, type GraphQLSchema, type IntrospectionQuery } from "graphql";
import { Problem } from "../kit/data/http";
import { ask } from "./requests";

/** Read the schema. Raises Problem if the function gives none. */
export async function schemaOf(name: string, signal: AbortSignal): Promise<GraphQLSchema> {
  const { result, status } = await ask(name, { query: getIntrospectionQuery({ inputValueDeprecation: false }) }, {}, signal);
  if (!result.data) throw new Problem(status, result.errors?.[0]?.message ?? "The function gives no schema.");
  return buildClientSchema(result.data as IntrospectionQuery);
}
