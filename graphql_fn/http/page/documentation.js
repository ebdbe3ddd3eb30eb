// The fields of a function, from introspection.

import { ask } from "./api.js";

const REFERENCE = "kind name ofType { kind name ofType { kind name ofType { kind name } } }";
const QUERY = `{
  __schema {
    queryType { name }
    mutationType { name }
    subscriptionType { name }
    types {
      kind name description
      fields(includeDeprecated: true) { name description type { ${REFERENCE} } args { name description defaultValue type { ${REFERENCE} } } }
      inputFields { name description defaultValue type { ${REFERENCE} } }
      enumValues { name description }
      possibleTypes { name }
    }
  }
}`;
const ROOTS = ["queryType", "mutationType", "subscriptionType"];
const KINDS = { OBJECT: "type", INPUT_OBJECT: "input", ENUM: "enum", SCALAR: "scalar", INTERFACE: "interface", UNION: "union" };

function reference(type) {
  if (type.kind === "NON_NULL") return `${reference(type.ofType)}!`;
  return type.kind === "LIST" ? `[${reference(type.ofType)}]` : type.name;
}

const parameter = (one) => `${one.name}: ${reference(one.type)}${one.defaultValue === null ? "" : ` = ${one.defaultValue}`}`;

function signature(field) {
  const given = field.args?.length ? `(${field.args.map(parameter).join(", ")})` : "";
  return field.type ? `${field.name}${given}: ${reference(field.type)}` : field.name;
}

// The types of a function, roots of queries first. Raises Error if introspection is refused.
export async function types(name) {
  const { result } = await ask(name, { query: QUERY });
  if (!result.data) throw new Error(`no documentation: ${result.errors[0].message}`);
  const schema = result.data.__schema;
  const roots = ROOTS.map((root) => schema[root]?.name).filter(Boolean);
  const rank = (type) => (roots.includes(type.name) ? roots.indexOf(type.name) : roots.length);
  return schema.types
    .filter((type) => !type.name.startsWith("__"))
    .sort((one, other) => rank(one) - rank(other) || one.name.localeCompare(other.name))
    .map((type) => ({
      name: type.name,
      kind: KINDS[type.kind] ?? "",
      description: type.description ?? "",
      isRoot: roots.includes(type.name),
      fields: (type.fields ?? type.inputFields ?? type.enumValues ?? []).map((field) => ({
        name: field.name,
        text: signature(field),
        description: field.description ?? "",
      })),
    }));
}

function element(tag, text, name = "") {
  const made = document.createElement(tag);
  made.textContent = text;
  if (name) made.className = name;
  return made;
}

function section(type, fields, open) {
  const details = document.createElement("details");
  details.open = open;
  const summary = document.createElement("summary");
  summary.append(element("code", type.name), " ", element("span", type.kind, "kind"));
  details.append(summary);
  if (type.description) details.append(element("p", type.description, "muted"));
  const list = document.createElement("dl");
  for (const field of fields) {
    const term = document.createElement("dt");
    term.append(element("code", field.text));
    list.append(term);
    if (field.description) list.append(element("dd", field.description));
  }
  if (fields.length) details.append(list);
  return details;
}

// Show the types that have the text in their name, or fields that have.
export function draw(all, text, place, count) {
  const wanted = text.trim().toLowerCase();
  const has = (one) => one.name.toLowerCase().includes(wanted);
  const shown = all
    .map((type) => ({ type, fields: !wanted || has(type) ? type.fields : type.fields.filter(has) }))
    .filter(({ type, fields }) => !wanted || has(type) || fields.length);
  place.replaceChildren(...shown.map(({ type, fields }) => section(type, fields, wanted !== "" || type.isRoot)));
  count.textContent = `types: ${shown.length}`;
}
