// A CodeMirror editor in a shadow root: there its styles are constructed style sheets, which the content policy permits.

import { closeBrackets, closeBracketsKeymap, autocompletion, completionKeymap } from "@codemirror/autocomplete";
import { defaultKeymap, history, historyKeymap, isolateHistory } from "@codemirror/commands";
import { bracketMatching, HighlightStyle, syntaxHighlighting } from "@codemirror/language";
import { type Diagnostic, forceLinting, forEachDiagnostic, linter, lintKeymap } from "@codemirror/lint";
import { Annotation, EditorState, type Extension } from "@codemirror/state";
import { drawSelection, EditorView, keymap, lineNumbers } from "@codemirror/view";
import { tags } from "@lezer/highlight";
import { useEffect, useRef, useState } from "preact/hooks";
import type { Placed } from "./requests";

export interface Props {
  label: string;
  /** The document: each document has separate undo steps. */
  of: string;
  text: string;
  /** Another number: the text was changed from outside. Else the editor has the newer text. */
  revision?: number;
  onChange: (text: string) => void;
  /** Fixed when the editor is made. */
  language: Extension;
  /** Called when the editor is made, and again for each document. */
  configure?: (view: EditorView) => void;
  /** Errors that the service found in the text. */
  problems?: readonly Placed[];
  /** Keys and their actions. */
  keys?: Readonly<Record<string, () => void>>;
  autofocus?: boolean;
}

const OTHER = Annotation.define<true>();

const LOOK = EditorView.theme({
  "&": { color: "var(--text)", backgroundColor: "var(--bg)", fontSize: "13px", height: "100%", border: "1px solid var(--border)", borderRadius: "6px", overflow: "hidden" },
  "&.cm-focused": { outline: "2px solid var(--accent)", outlineOffset: "1px" },
  ".cm-scroller": { fontFamily: "var(--mono)", lineHeight: "20px" },
  ".cm-content": { caretColor: "var(--text)", padding: "6px 0" },
  ".cm-gutters": { backgroundColor: "var(--bg)", color: "var(--muted)", border: "0" },
  ".cm-cursor": { borderLeftColor: "var(--text)" },
  "&.cm-focused .cm-selectionBackground, .cm-selectionBackground": { background: "color-mix(in srgb, var(--accent) 28%, transparent) !important" },
  "&.cm-focused .cm-matchingBracket": { backgroundColor: "color-mix(in srgb, var(--accent) 22%, transparent)" },
  ".cm-tooltip": { backgroundColor: "var(--surface)", color: "var(--text)", border: "1px solid var(--border)", borderRadius: "6px" },
  ".cm-tooltip-autocomplete > ul > li": { padding: "2px 8px", lineHeight: "20px" },
  ".cm-tooltip-autocomplete > ul > li[aria-selected]": { backgroundColor: "var(--accent)", color: "var(--on-accent)" },
  ".cm-completionDetail": { color: "var(--muted)", fontStyle: "normal" },
  "li[aria-selected] .cm-completionDetail": { color: "var(--on-accent)" },
  ".cm-completionInfo": { maxWidth: "320px", padding: "6px 10px" },
  ".cm-diagnostic": { padding: "4px 10px", whiteSpace: "pre-wrap" },
  ".cm-diagnostic-error": { borderLeftColor: "var(--bad)" },
  ".cm-lintRange-error": { backgroundImage: "none", textDecoration: "underline wavy var(--bad)" },
  ".cm-lintRange-warning": { backgroundImage: "none", textDecoration: "underline wavy var(--running)" },
});

const COLOURS = HighlightStyle.define([
  { tag: [tags.keyword, tags.definitionKeyword], color: "var(--accent)" },
  { tag: [tags.string], color: "var(--good)" },
  { tag: [tags.integer, tags.float, tags.number, tags.bool, tags.null], color: "var(--running)" },
  { tag: [tags.attributeName, tags.modifier], color: "var(--expired)" },
  { tag: tags.variableName, color: "var(--bad)" },
  { tag: tags.lineComment, color: "var(--muted)", fontStyle: "italic" },
]);

export function Editor({ label, of, text, revision = 0, onChange, language, configure, problems = [], keys = {}, autofocus = false }: Props) {
  const host = useRef<HTMLDivElement>(null);
  const view = useRef<EditorView | null>(null);
  const latest = useRef({ onChange, keys, problems });
  latest.current = { onChange, keys, problems };
  const documents = useRef(new Map<string, EditorState>());
  const shown = useRef(of);
  const [said, say] = useState("");
  const make = (doc: string): EditorState => EditorState.create({ doc, extensions: extensions.current });
  const extensions = useRef<Extension>([]);

  useEffect(() => {
    const element = host.current;
    if (!element) return;
    const root = element.shadowRoot ?? element.attachShadow({ mode: "open" });
    extensions.current = [
      keymap.of(Object.keys(latest.current.keys).map((key) => ({ key, run: () => (latest.current.keys[key]?.(), true), preventDefault: true }))),
      lineNumbers(),
      history(),
      drawSelection(),
      bracketMatching(),
      closeBrackets(),
      autocompletion({ icons: false, interactionDelay: 0 }),
      language,
      linter((current) => latest.current.problems.flatMap((problem) => placed(problem, current))),
      syntaxHighlighting(COLOURS),
      LOOK,
      keymap.of([...closeBracketsKeymap, ...completionKeymap, ...lintKeymap, ...historyKeymap, ...defaultKeymap]),
      EditorView.lineWrapping,
      EditorView.contentAttributes.of({ "aria-label": label, "aria-multiline": "true", autocapitalize: "none" }),
      EditorView.updateListener.of((update) => {
        if (update.docChanged && !update.transactions.some((one) => one.annotation(OTHER))) latest.current.onChange(update.state.doc.toString());
        say(firstOf(update.state));
      }),
    ];
    const made = new EditorView({ state: make(text), parent: root as unknown as Element, root });
    view.current = made;
    configure?.(made);
    if (autofocus) made.focus();
    return () => made.destroy();
  }, []);

  useEffect(() => {
    const current = view.current;
    if (!current || shown.current === of) return;
    documents.current.set(shown.current, current.state);
    shown.current = of;
    const known = documents.current.get(of);
    current.setState(known?.doc.toString() === text ? known : make(text));
    configure?.(current);
    say(firstOf(current.state));
  }, [of]);

  useEffect(() => {
    const current = view.current;
    if (!current || current.state.doc.toString() === text) return;
    current.dispatch({ changes: { from: 0, to: current.state.doc.length, insert: text }, annotations: [OTHER.of(true), isolateHistory.of("full")] });
  }, [revision]);

  useEffect(() => {
    if (view.current) configure?.(view.current);
  }, [configure]);

  useEffect(() => {
    if (view.current) forceLinting(view.current);
  }, [problems]);

  return (
    <>
      <div class="editor" ref={host} />
      <p class="editor-problem" role="status">
        {said}
      </p>
    </>
  );
}

/** An error with a place as marks in the text. */
function placed({ message, locations = [] }: Placed, { state }: EditorView): Diagnostic[] {
  return locations.flatMap(({ line, column }) => {
    if (line < 1 || line > state.doc.lines) return [];
    const at = state.doc.line(line);
    const from = Math.min(at.to, at.from + column - 1);
    const word = /^\w+/.exec(state.doc.sliceString(from, at.to))?.[0].length ?? 1;
    return [{ from, to: Math.min(at.to, from + word), severity: "error", message }];
  });
}

/** The first error of a text, in words. */
function firstOf(state: EditorState): string {
  const found: { from: number; message: string }[] = [];
  forEachDiagnostic(state, (one, from) => found.push({ from, message: one.message }));
  const [first] = found.sort((a, b) => a.from - b.from);
  if (!first) return "";
  const line = state.doc.lineAt(Math.min(first.from, state.doc.length));
  const more = new Set(found.map((one) => one.from)).size - 1; // the service and the schema complain of the same place
  return `Line ${line.number}: ${first.message}${more > 0 ? ` (and ${more} more)` : ""}`;
}
