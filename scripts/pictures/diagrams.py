"""Pictures of diagrams in Mermaid's language, drawn by its npm package in Chromium, without a network."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from playwright.sync_api import Error, sync_playwright

from pictures.chromium import ChromiumMissing, launch_options

_MERMAID = Path(__file__).resolve().parents[2] / "ui" / "node_modules" / "@mermaid-js" / "tiny" / "dist" / "mermaid.tiny.js"
_DRAW = """async (sources) => {
  mermaid.initialize({
    startOnLoad: false, theme: "neutral", fontFamily: "sans-serif", securityLevel: "strict",
    flowchart: { wrappingWidth: 400, rankSpacing: 30 },
    sequence: { actorMargin: 20, width: 130, messageFontSize: 19, actorFontSize: 19, mirrorActors: false }
  });
  const drawn = [];
  for (const [number, source] of sources.entries())
    drawn.push((await mermaid.render(`diagram-${number + 1}`, source)).svg);
  return drawn;
}"""


class DiagramFailed(Exception):
    """A diagram could not be drawn; the text has the reason and the remedy."""


def drawn(sources: Sequence[str]) -> Sequence[str]:
    """Return an SVG element for each source of a page. Raises DiagramFailed."""
    if not sources:
        return ()
    if not _MERMAID.exists():
        raise DiagramFailed(f"{_MERMAID} is missing\nhint: ./scripts/test installs the packages of ui/package-lock.json")
    try:
        options = launch_options(whole=False)
    except ChromiumMissing as error:
        raise DiagramFailed(str(error)) from error
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(**options)
        try:
            page = browser.new_page()
            page.add_script_tag(path=_MERMAID)
            return [str(svg) for svg in page.evaluate(_DRAW, list(sources))]
        except Error as error:
            reason = error.message.partition("\n    at ")[0]  # without the places in Mermaid's code
            raise DiagramFailed(f"a diagram cannot be drawn: {reason}") from error
        finally:
            browser.close()
