// A document in its usual form: one selection a line, two spaces for each level. Comments stay before the selection that they precede.

import { type ASTNode, type DocumentNode, Kind, type Location, parse, print, type SelectionNode, type SelectionSetNode, TokenKind } from "graphql";

/** Format an executable document. Raises GraphQLError for a text with an error of syntax. */
export function formatted(text: string): string {
  const document = parse(text);
  const comments = new Comments(document);
  const parts: string[] = [];
  for (const definition of document.definitions) {
    const before = comments.until(definition.loc?.start ?? 0, "");
    const isExecutable = definition.kind === Kind.OPERATION_DEFINITION || definition.kind === Kind.FRAGMENT_DEFINITION;
    const body = isExecutable ? [headOf(definition), bodyOf(definition.selectionSet, "", comments)].filter(Boolean).join(" ") : print(definition);
    parts.push([...before, body].join("\n"));
  }
  const rest = comments.until(Infinity, "");
  return `${[...parts, ...(rest.length ? [rest.join("\n")] : [])].join("\n\n")}\n`;
}

/** A printed node up to its selections; empty for a query without a name, variables and directives. */
const headOf = <T extends { selectionSet: SelectionSetNode } & ASTNode>(node: T): string =>
  print({ ...node, selectionSet: { ...node.selectionSet, selections: [] } } as ASTNode)
    .replace(/\s*\{\s*\}\s*$/, "")
    .trimEnd();

function bodyOf({ selections, loc }: SelectionSetNode, indent: string, comments: Comments): string {
  const inner = `${indent}  `;
  const lines = selections.flatMap((selection) => [...comments.until(selection.loc?.start ?? 0, inner), `${inner}${selectionOf(selection, inner, comments)}`]);
  return ["{", ...lines, ...comments.until(endOf(loc), inner), `${indent}}`].join("\n");
}

function selectionOf(selection: SelectionNode, indent: string, comments: Comments): string {
  if (selection.kind === Kind.FRAGMENT_SPREAD || !selection.selectionSet) return indented(print(selection), indent);
  const { selectionSet } = selection;
  return `${indented(headOf({ ...selection, selectionSet }), indent)} ${bodyOf(selectionSet, indent, comments)}`;
}

const indented = (text: string, indent: string): string => text.replaceAll("\n", `\n${indent}`);

const endOf = (loc: Location | undefined): number => (loc ? loc.end : Infinity);

/** The comments of a document, in order; each is given once. */
class Comments {
  private readonly left: { start: number; text: string }[] = [];

  constructor({ loc }: DocumentNode) {
    for (let token = loc?.startToken ?? null; token; token = token.next) {
      if (token.kind === TokenKind.COMMENT) this.left.push({ start: token.start, text: `#${token.value}` });
    }
  }

  /** The comments before a position that were not given yet, as lines. */
  until(position: number, indent: string): string[] {
    const found: string[] = [];
    while (this.left[0] && this.left[0].start < position) found.push(`${indent}${this.left.shift()?.text ?? ""}`);
    return found;
  }
}
