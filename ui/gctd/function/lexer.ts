// The parts of Go source that get a colour. A regular expression is enough: Go's tokens do not depend on each other.

const TOKEN =
  /(\/\/[^\n]*|\/\*[^]*?(?:\*\/|$))|(`[^`]*(?:`|$)|"(?:[^"\\\n]|\\.)*"?|'(?:[^'\\\n]|\\.)*'?)|(\b\d[\w.]*)|\b(break|case|chan|const|continue|default|defer|else|fallthrough|for|func|go|goto|if|import|interface|map|package|range|return|select|struct|switch|type|var)\b|\w+/g;
const KINDS = ["comment", "string", "number", "keyword"] as const;

export interface Piece {
  from: number;
  to: number;
  kind: string;
}

/** The coloured parts of a text, in order. */
export function partsOf(text: string): Piece[] {
  const found: Piece[] = [];
  for (const match of text.matchAll(TOKEN)) {
    const kind = KINDS.find((_, index) => match[index + 1] !== undefined);
    if (kind) found.push({ from: match.index, to: match.index + match[0].length, kind });
  }
  return found;
}
