// Tables that people have: lines of a spreadsheet, with commas, semicolons or tabs between, and with decimal commas.

/** A row of a table by the names in its first line, which are in lower case. */
export type Row = Readonly<Record<string, string>>;

const SEPARATORS = [";", "\t", ","];

/** The rows of a text. The separator is the one that the first line has. */
export function rowsOf(text: string): Row[] {
  const [head = "", ...lines] = text.replace(/^\ufeff/, "").split(/\r?\n/).filter((line) => line.trim());
  const separator = SEPARATORS.find((each) => head.includes(each)) ?? ",";
  const names = fields(head, separator).map((name) => name.trim().toLowerCase());
  return lines.map((line) => {
    const values = fields(line, separator);
    return Object.fromEntries(names.map((name, place) => [name, (values[place] ?? "").trim()]));
  });
}

/** The fields of a line; a field in quotation marks may have the separator, and doubled marks (RFC 4180). */
function fields(line: string, separator: string): string[] {
  const found: string[] = [];
  let field = "";
  let quoted = false;
  for (let place = 0; place < line.length; place += 1) {
    const character = line[place] ?? "";
    if (quoted && character === '"' && line[place + 1] === '"') {
      field += '"';
      place += 1;
    } else if (character === '"') quoted = !quoted;
    else if (character === separator && !quoted) {
      found.push(field);
      field = "";
    } else field += character;
  }
  return [...found, field];
}
