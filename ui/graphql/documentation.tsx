// The schema to read: root types, types, fields, each a click away. The way back is kept.

import {
  type GraphQLArgument,
  type GraphQLField,
  type GraphQLInputField,
  type GraphQLNamedType,
  type GraphQLSchema,
  type GraphQLType,
  getNamedType,
  isAbstractType,
  isEnumType,
  isInputObjectType,
  isInterfaceType,
  isObjectType,
} from "graphql";
import { useMemo } from "preact/hooks";

/** A place in the documentation: a type, and maybe a field of it; null is the start. */
export interface Topic {
  type: string;
  field?: string;
}

interface Props {
  schema: GraphQLSchema;
  topics: readonly Topic[];
  /** Go to a topic, or back with null. */
  go: (topic: Topic | null) => void;
  search: string;
  setSearch: (text: string) => void;
}

const MOST = 60;

export function Documentation({ schema, topics, go, search, setSearch }: Props) {
  const topic = topics.at(-1);
  const type = topic ? schema.getType(topic.type) : undefined;
  return (
    <>
      <p class="line">
        <input type="search" aria-label="Search types and fields" placeholder="search types and fields" value={search} autocomplete="off" autocapitalize="none" spellcheck={false} onInput={(event) => setSearch(event.currentTarget.value)} />
        {topic && !search && (
          <button type="button" class="small" onClick={() => go(null)}>
            Back
          </button>
        )}
      </p>
      {search ? <Found schema={schema} text={search} go={go} /> : type ? <Type schema={schema} type={type} field={topic?.field} go={go} /> : <Start schema={schema} go={go} />}
    </>
  );
}

type Go = Props["go"];

function TypeLink({ type, go }: { type: GraphQLType; go: Go }) {
  const text = String(type);
  const name = getNamedType(type).name;
  const [before = "", after = ""] = text.split(name);
  return (
    <code>
      {before}
      <button type="button" class="as-link" onClick={() => go({ type: name })}>
        {name}
      </button>
      {after}
    </code>
  );
}

function Start({ schema, go }: { schema: GraphQLSchema; go: Go }) {
  const roots = [schema.getQueryType(), schema.getMutationType(), schema.getSubscriptionType()].filter((type) => type != null);
  const others = Object.values(schema.getTypeMap()).filter((type) => !type.name.startsWith("__") && !roots.some((root) => root === type));
  return (
    <>
      <h3>Root types</h3>
      <ul class="plain-list">
        {roots.map((type) => (
          <li key={type.name}>
            <TypeLink type={type} go={go} /> <span class="muted">{type.description}</span>
          </li>
        ))}
      </ul>
      <h3>All types</h3>
      <ul class="plain-list">
        {others
          .sort((a, b) => a.name.localeCompare(b.name))
          .map((type) => (
            <li key={type.name}>
              <TypeLink type={type} go={go} />
            </li>
          ))}
      </ul>
    </>
  );
}

type AnyField = GraphQLField<unknown, unknown> | GraphQLInputField;

const fieldsOf = (type: GraphQLNamedType): readonly AnyField[] => (isObjectType(type) || isInterfaceType(type) || isInputObjectType(type) ? Object.values<AnyField>(type.getFields()) : []);

function Type({ schema, type, field, go }: { schema: GraphQLSchema; type: GraphQLNamedType; field: string | undefined; go: Go }) {
  const fields = fieldsOf(type);
  const one = fields.find((each) => each.name === field);
  if (one) return <Field field={one} of={type} go={go} />;
  return (
    <>
      <h3>
        <code>{type.name}</code>
      </h3>
      {type.description && <p>{type.description}</p>}
      {isAbstractType(type) && (
        <p class="line">
          Possible types:
          {schema.getPossibleTypes(type).map((each) => (
            <TypeLink key={each.name} type={each} go={go} />
          ))}
        </p>
      )}
      {isObjectType(type) && type.getInterfaces().length > 0 && (
        <p class="line">
          Implements:
          {type.getInterfaces().map((each) => (
            <TypeLink key={each.name} type={each} go={go} />
          ))}
        </p>
      )}
      <ul class="fields">
        {fields.map((each) => (
          <li key={each.name}>
            <Signature field={each} of={type} go={go} />
            {each.description && <p class="muted">{each.description}</p>}
            <Deprecated reason={each.deprecationReason} />
          </li>
        ))}
        {isEnumType(type) &&
          type.getValues().map((value) => (
            <li key={value.name}>
              <code>{value.name}</code>
              {value.description && <p class="muted">{value.description}</p>}
              <Deprecated reason={value.deprecationReason} />
            </li>
          ))}
      </ul>
    </>
  );
}

const argumentsOf = (field: AnyField): readonly GraphQLArgument[] => ("args" in field ? field.args : []);

function Signature({ field, of, go }: { field: AnyField; of: GraphQLNamedType; go: Go }) {
  const args = argumentsOf(field);
  return (
    <p>
      <code>
        <button type="button" class="as-link field" onClick={() => go({ type: of.name, field: field.name })}>
          {field.name}
        </button>
        {args.length > 0 && `(${args.map((each) => each.name).join(", ")})`}:{" "}
      </code>
      <TypeLink type={field.type} go={go} />
    </p>
  );
}

function Deprecated({ reason }: { reason: string | null | undefined }) {
  return reason ? <p class="bad">Deprecated: {reason}</p> : null;
}

function Field({ field, of, go }: { field: AnyField; of: GraphQLNamedType; go: Go }) {
  const args = argumentsOf(field);
  return (
    <>
      <h3>
        <code>
          {of.name}.{field.name}
        </code>
      </h3>
      {field.description && <p>{field.description}</p>}
      <Deprecated reason={field.deprecationReason} />
      <p>
        Type: <TypeLink type={field.type} go={go} />
      </p>
      {args.length > 0 && (
        <>
          <h4>Arguments</h4>
          <ul class="fields">
            {args.map((each) => (
              <li key={each.name}>
                <p>
                  <code>{each.name}: </code>
                  <TypeLink type={each.type} go={go} />
                </p>
                {each.description && <p class="muted">{each.description}</p>}
              </li>
            ))}
          </ul>
        </>
      )}
      <p>
        Field of <TypeLink type={of} go={go} />
      </p>
    </>
  );
}

function Found({ schema, text, go }: { schema: GraphQLSchema; text: string; go: Go }) {
  const topics = useMemo(() => {
    const wanted = text.trim().toLowerCase();
    const types = Object.values(schema.getTypeMap()).filter((type) => !type.name.startsWith("__"));
    const fields = types.flatMap((type) => fieldsOf(type).map((field): Topic => ({ type: type.name, field: field.name })));
    const all: Topic[] = [...types.map((type) => ({ type: type.name })), ...fields];
    return all.filter(({ type, field }) => (field ?? type).toLowerCase().includes(wanted));
  }, [schema, text]);
  return (
    <>
      <p class="muted" role="status">
        {topics.length} found{topics.length > MOST && `, the first ${MOST} shown`}
      </p>
      <ul class="plain-list">
        {topics.slice(0, MOST).map((topic) => (
          <li key={`${topic.type} ${topic.field ?? ""}`}>
            <button type="button" class="as-link" onClick={() => go(topic)}>
              <code>{topic.field ? `${topic.type}.${topic.field}` : topic.type}</code>
            </button>
          </li>
        ))}
      </ul>
    </>
  );
}
