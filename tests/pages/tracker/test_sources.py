"""The sources of the pages: types hold, the served files are small, and no file is loaded from another host."""

from __future__ import annotations

import gzip
import json
import re
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path

import pytest

from gctd.http.api import SCREENS
from tests.support import ROOT
from tests.support.web.node import built_pages, node

UI = ROOT / "ui"
DASHBOARD = ROOT / "gctd" / "http" / "dashboard"
KITCHEN = ROOT / "pantry" / "http" / "kitchen"
EDITOR = ROOT / "graphql_fn" / "http" / "editor"
FIRST_VIEW = 60 * 1024
FUNCTION_PAGE = 60 * 1024
QUERIES = 200 * 1024
NAMED = {"www.w3.org", "github.com", "host", "commonmark.org", "en.wikipedia.org", "yarnpkg.com"}


pytestmark = pytest.mark.real


@pytest.fixture(scope="module", autouse=True)
def _built() -> None:
    built_pages()


class Assets(HTMLParser):
    """The files that a page loads by itself."""

    def __init__(self, page: Path) -> None:
        super().__init__()
        self.found: set[str] = set()
        self.feed(page.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        named = dict(attrs)
        address = named.get("src") or (named.get("href") if tag == "link" else None)
        if address and not address.startswith("data:"):
            self.found.add(address.removeprefix("/"))


def imported(name: str) -> set[str]:
    """Return a script and the scripts that it imports before it runs."""
    found, left = set[str](), [name]
    while left:
        script = left.pop()
        if script not in found:
            found.add(script)
            text = (DASHBOARD / script).read_text(encoding="utf-8")
            left += [f"static/{other}" for other in re.findall(r'(?:import|from) *"\./([^"]+\.js)"', text)]
    return found


def imported_packages(entry: Path) -> set[str]:
    """Return the npm packages of a page: the imports of its entry file, directly or through other files of `ui/`."""
    seen, left, names = set[Path](), [entry], set[str]()
    while left:
        file = left.pop()
        if file in seen:
            continue
        seen.add(file)
        values = re.sub(r"^import type .*$", "", file.read_text(encoding="utf-8"), flags=re.MULTILINE)
        for name in re.findall(r'(?:from |import\(|import )"([^"]+)"', values):
            if name.startswith("."):
                left += [each for suffix in (".ts", ".tsx") if (each := (file.parent / f"{name}{suffix}").resolve()).exists()]
            else:
                names.add("/".join(name.split("/")[: 2 if name.startswith("@") else 1]))
    return names


def test_the_rules_of_the_pages_hold() -> None:
    """The unit tests of `ui/unit/`, which `npm test` runs as well."""
    node([str(UI / "unit" / "run.mjs"), "--test-reporter=dot"], UI)


def test_types_hold() -> None:
    node([str(UI / "node_modules" / "typescript" / "bin" / "tsc")], UI)


def test_each_screen_at_its_first_view_is_at_most_60_kb() -> None:
    shell = Assets(DASHBOARD / "index.html").found
    screens = {*DASHBOARD.glob("static/*.js")} - {DASHBOARD / name for name in shell}
    assert screens
    for screen in screens:
        name = f"static/{screen.name}"
        files = shell | {each for script in [*shell, name] if script.endswith(".js") for each in imported(script)}
        files |= {f"static/{style.name}" for style in DASHBOARD.glob(f"static/{screen.stem.rpartition('-')[0]}-*.css")}
        size = sum(len(gzip.compress((DASHBOARD / each).read_bytes(), 9)) for each in files)
        assert size <= FIRST_VIEW, (screen.name, size)


def test_the_page_of_a_function_with_its_chart_is_at_most_60_kb_more() -> None:
    shell = {each for script in Assets(DASHBOARD / "index.html").found if script.endswith(".js") for each in imported(script)}
    # the code that it shares with the comparison is another file of this name, which the page imports
    files = max((imported(f"static/{page.name}") for page in DASHBOARD.glob("static/function-*.js")), key=len) - shell
    files |= {f"static/{style.name}" for name in ("function", "uPlot") for style in DASHBOARD.glob(f"static/{name}-*.css")}
    files |= {f"static/{script.name}" for script in DASHBOARD.glob("static/uPlot*.js")}
    assert len(files) > 5
    assert sum(len(gzip.compress((DASHBOARD / each).read_bytes(), 9)) for each in files) <= FUNCTION_PAGE


def test_the_kitchen_at_its_first_view_is_at_most_60_kb() -> None:
    files = {name.removeprefix("./") for name in Assets(KITCHEN / "index.html").found}
    scripts = {f"static/{file.name}" for file in KITCHEN.glob("static/*") if file.suffix != ".wasm"}
    assert scripts == {name for name in files if name.startswith("static/")}
    assert sum(len(gzip.compress((KITCHEN / name).read_bytes(), 9)) for name in files) <= FIRST_VIEW


def test_the_page_for_queries_is_at_most_200_kb_and_no_other_page_has_its_editor() -> None:
    files = Assets(EDITOR / "index.html").found
    assert {f"static/{file.name}" for file in EDITOR.glob("static/*")} == files
    assert sum(len(gzip.compress((EDITOR / name).read_bytes(), 9)) for name in files) <= QUERIES
    for page in (DASHBOARD, KITCHEN):
        assert not [file.name for file in page.rglob("*.js") if "cm-content" in file.read_text(encoding="utf-8")]


def test_the_service_worker_keeps_each_file_of_the_first_view() -> None:
    worker = (KITCHEN / "sw.js").read_text(encoding="utf-8")
    kept = set(json.loads(re.findall(r"\[\"[^\]]+\]", worker)[0]))
    assert {name.removeprefix("./") for name in Assets(KITCHEN / "index.html").found} <= kept
    assert all((KITCHEN / name).is_file() for name in kept)
    manifest = json.loads((KITCHEN / "manifest.webmanifest").read_text(encoding="utf-8"))
    assert {icon["src"] for icon in manifest["icons"]} <= kept


def luminance(red: float, green: float, blue: float) -> float:
    """Relative luminance, 0 to 1 (WCAG 2)."""
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in (red, green, blue)]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_scale_is_in_order_of_lightness_for_every_eye(scheme: str) -> None:
    """Each step is lighter (in the dark) or darker than the one before, also without one kind of cones (Machado 2009)."""
    styles = (UI / "kit" / "page" / "base.css").read_text(encoding="utf-8")
    pairs = [re.findall(rf"--risk-{step}: light-dark\(#(\w{{6}}), #(\w{{6}})\)", styles) for step in range(1, 6)]
    colours = [[part / 255 for part in bytes.fromhex(pair[scheme == "dark"])] for [pair] in pairs]
    eyes = {
        "usual": ((1, 0, 0), (0, 1, 0), (0, 0, 1)),
        "protan": ((0.152286, 1.052583, -0.204868), (0.114503, 0.786281, 0.099216), (-0.003882, -0.048116, 1.051998)),
        "deutan": ((0.367322, 0.860646, -0.227968), (0.280085, 0.672501, 0.047413), (-0.01182, 0.04294, 0.968881)),
        "tritan": ((1.255528, -0.076749, -0.178779), (-0.078411, 0.930809, 0.147602), (0.004733, 0.691367, 0.3039)),
    }
    for eye, matrix in eyes.items():
        seen = [
            luminance(*(min(1.0, max(0.0, sum(a * b for a, b in zip(row, colour, strict=True)))) for row in matrix))
            for colour in colours
        ]
        steps = [(max(a, b) + 0.05) / (min(a, b) + 0.05) for a, b in pairwise(seen)]
        assert seen == sorted(seen, reverse=scheme == "light"), (eye, seen)
        assert min(steps) > 1.15, (eye, steps)


def test_the_server_knows_the_address_of_each_screen() -> None:
    routes = (UI / "gctd" / "routes.ts").read_text(encoding="utf-8")
    patterns = {text for part in re.findall(r"patterns: \[([^\]]+)\]", routes) for text in re.findall(r'"([^"]+)"', part)}
    assert patterns
    assert {re.sub(r":(\w+)", r"{\1}", pattern) for pattern in patterns} | {"/"} == set(SCREENS)


def test_the_lock_file_names_no_address_and_every_digest() -> None:
    packages = json.loads((UI / "package-lock.json").read_text(encoding="utf-8"))["packages"]
    assert "resolved" not in json.dumps(packages)
    assert all("integrity" in package for name, package in packages.items() if name)


@pytest.mark.parametrize(
    ("entry", "built", "least"),
    [
        ("gctd/main.tsx", DASHBOARD, {"preact", "d3-hierarchy", "uplot"}),
        ("pantry/main.tsx", KITCHEN, {"preact", "idb"}),
        ("pantry/camera/worker.ts", KITCHEN, {"zxing-wasm"}),
    ],
)
def test_each_page_has_the_whole_license_of_each_bundled_package(entry: str, built: Path, least: set[str]) -> None:
    notices = "".join((built / "licenses.txt").read_text(encoding="utf-8").split())
    packages = imported_packages(UI / entry)
    assert packages >= least
    for package in packages:
        [text] = [file.read_text(encoding="utf-8") for file in (UI / "node_modules" / package).glob("LICEN[CS]E*")]
        assert "".join(text.split()) in notices, package


def test_served_files_name_no_other_host() -> None:
    for file in [*DASHBOARD.rglob("*"), *KITCHEN.rglob("*"), *EDITOR.rglob("*")]:
        if file.suffix in {".js", ".css", ".html"}:
            addresses = re.findall(r"https?://([\w.-]+)", file.read_text(encoding="utf-8"))
            assert set(addresses) <= NAMED, f"{file.name}: names of XML, examples and descriptions, nothing that is asked"


def test_the_glossary_has_each_term_once() -> None:
    rows = re.findall(
        r"^\| ([^|]+) \| [^|]+ \| [^|]+ \|$", (ROOT / "docs" / "reference" / "glossary.md").read_text("utf-8"), re.MULTILINE
    )
    terms = [term.strip() for row in rows[1:] for term in row.split(",") if not row.startswith("---")]
    assert len(terms) > 20
    assert len(set(terms)) == len(terms)
