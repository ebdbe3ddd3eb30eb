"""The site of the documentation: every page, no warning, links with targets, a search, and nothing from a network."""

from __future__ import annotations

import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import documentation
import pytest
from playwright.async_api import expect
from reference import pages as reference

from tests.support.web.browser import chromium, visitor

pytestmark = pytest.mark.long


class Parsed(HTMLParser):
    """The links of a page, the addresses that a browser loads with it, and its anchors."""

    def __init__(self, file: Path) -> None:
        super().__init__()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.anchors: set[str] = set()
        self.feed(file.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = {name: value for name, value in attrs if value is not None}
        self.anchors |= {found[name] for name in ("id", "name") if name in found}
        if tag == "a" and "href" in found:
            self.links.append(found["href"])
        elif tag in {"link", "script", "img", "iframe", "source"}:
            self.loaded += [found[name] for name in ("href", "src") if name in found]


def build(*arguments: Path) -> subprocess.CompletedProcess[str]:
    """Run the script, which fails if there is a warning."""
    command = [sys.executable, documentation.__file__, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=240)


def test_help_builds_nothing(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(documentation, "build", pytest.fail)
    with pytest.raises(SystemExit) as ended:
        documentation.main(["--help"])
    assert ended.value.code == 0
    assert "Builds the site of docs/" in capsys.readouterr().out


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The built site."""
    directory = tmp_path_factory.mktemp("site") / "documentation"
    done = build(directory)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == f"{directory / 'index.html'}\n"
    return directory


@pytest.fixture(scope="module")
def pages(site: Path) -> dict[Path, Parsed]:
    return {file: Parsed(file) for file in sorted(site.rglob("*.html"))}


def test_each_page_is_in_the_site(site: Path, pages: dict[Path, Parsed]) -> None:
    wanted = {file.relative_to(documentation.DOCS).with_suffix(".html") for file in documentation.DOCS.rglob("*.md")}
    made = {Path("reference/generated", name).with_suffix(".html") for name in reference.pages() if name.endswith(".md")}
    assert wanted | made <= {file.relative_to(site) for file in pages}
    linked = {link.partition("#")[0] for link in pages[site / "index.html"].links}
    assert {str(page) for page in wanted} - {"README.html"} <= linked | {
        f"explanation/decisions/{Path(link).name}" for link in pages[site / "explanation/decisions/README.html"].links
    }


def test_each_link_within_the_site_has_a_target(site: Path, pages: dict[Path, Parsed]) -> None:
    without = []
    for file, parsed in pages.items():
        for link in [*parsed.links, *parsed.loaded]:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (file.parent / unquote(parts.path)).resolve() if parts.path else file
            anchor = unquote(parts.fragment)
            if not target.is_file() or (anchor and target in pages and anchor not in pages[target].anchors):
                without.append(f"{file.relative_to(site)}: {link}")
    assert without == []


def test_no_page_loads_from_a_network(site: Path, pages: dict[Path, Parsed]) -> None:
    loaded = [address for parsed in pages.values() for address in parsed.loaded]
    styles = [file.read_text(encoding="utf-8") for file in site.rglob("*.css")]
    loaded += [address for style in styles for address in re.findall(r"(?:@import|url\()\s*['\"]?([^'\")\s]+)", style)]
    assert len(loaded) > len(pages)
    assert [address for address in loaded if re.match(r"(https?:)?//", address)] == []


def test_each_diagram_is_a_picture_with_its_words(site: Path) -> None:
    page = (site / "explanation" / "architecture.html").read_text(encoding="utf-8")
    pictures = re.findall(r"<figure .*?<svg .*?</figure>", page, re.DOTALL)
    assert [word in picture for picture, word in zip(pictures, ("stock ledger", "MoneyMoved"), strict=True)] == [True, True]
    assert "flowchart TD" not in page


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("[a page](missing.md)", "target not found: 'missing.md'"),
        ("```mermaid\nflowchart TD\n  a[b --> c\n```", "a diagram cannot be drawn: Page.evaluate: Error: Parse error on line"),
    ],
)
def test_a_link_without_a_target_and_a_diagram_with_an_error_fail_the_build(tmp_path: Path, text: str, reason: str) -> None:
    docs = tmp_path / "docs"
    docs.mkdir()
    (docs / "README.md").write_text(f"# Start\n\n{text}\n", encoding="utf-8")
    done = build(tmp_path / "site", docs)
    assert done.returncode == 1
    assert reason in done.stderr


@pytest.mark.asyncio
async def test_a_word_is_found_from_the_disk(site: Path) -> None:
    async with chromium() as browser, visitor(browser, site.as_uri()) as guest:
        page = await guest.context.new_page()
        await page.goto(f"{site.as_uri()}/search.html?q=incarnation")
        await expect(page.locator("#search-results li a", has_text="Event log").first).to_be_visible()
