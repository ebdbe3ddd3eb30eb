"""The verdicts on commits of a repository, by `gctd check` and by the server, against the table of the document."""

from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import attrs
import msgspec
import pytest

from eventlog.commands import Commands
from eventlog.testing.memory import MemoryLog
from gctd.broker.blobs import MemoryBlobs
from gctd.cli.builds.checking.measure import MeasuredProject
from gctd.control.comparing.baselines import Baselines
from gctd.control.comparing.judging import Judging
from gctd.domain.registry import REGISTRY
from gctd.domain.verdict import Rules
from gctd.engines import report as report_format
from gctd.engines.changes.gate import GateVerdict
from gctd.readmodel.queries import TrackerQueries
from gctd.readmodel.views import AnalysisView
from tests.gctd.control.comparing.test_behind import Tables
from tests.support import ROOT
from tests.support.programs import warm
from tests.support.tracker import go_library

pytestmark = pytest.mark.real

DOCUMENT = ROOT / "docs" / "explanation" / "tracker.md"
_ROW = re.compile(r"\| ([^|]+) \| (passed|failed|unknown) \| ?([^|]*?) ?\|")


def branching(name: str, complexity: int, package: str = "shop") -> str:
    """A file with a function of this complexity."""
    return f"package {package}\n\n{function(name, complexity)}"


def function(name: str, complexity: int, first: int = 1) -> str:
    branches = "".join(f"\tif x == {n} {{\n\t\tx = x*{n} + {n}\n\t}}\n" for n in range(first, first + complexity - 1))
    return f"func {name}(x int) int {{\n{branches}\treturn x\n}}\n"


def case(package: str, body: str, *imports: str) -> str:
    """A file with a test."""
    lines = "".join(f'\t"{one}"\n' for one in ("testing", *imports))
    return f"package {package}\n\nimport (\n{lines})\n\nfunc TestAll(t *testing.T) {{\n\tt.Log({body}\n}}\n"


def calls(name: str, complexity: int) -> str:
    """The body of a test that runs all of a function."""
    return f")\n\tfor n := 0; n < {complexity + 1}; n++ {{\n\t\t{name}(n)\n\t}}"


RISK = branching("Risk", 10)
WORSE = {"shop/risk.go": branching("Risk", 11)}
SAFE_TEST = calls("Safe", 10)
SHOP_TEST = calls("Add", 3) + '\n\tfor n := 0; n < 3; n++ {\n\t\thandlers["a"](n)\n\t}'
HANDLERS = 'package shop\n\nvar handlers = map[string]func(int) int{\n\t"a": func(x int) int { return x },\n}\n'
COMPLEX = HANDLERS.replace(
    '\t"a"', f'\t"b": {function("", 10).removeprefix("func ").replace("(x", "func(x", 1).rstrip()},\n\t"a"'
)
MAIN = (
    'package main\n\nimport "os"\n\nfunc main() {\n'
    + "".join(f"\tif len(os.Args) == {n} {{\n\t\tprintln({n}, os.Args[0])\n\t}}\n" for n in range(2, 11))
    + "}\n"
)
EXTRA_TEST = case("extra", "Extra(1))")
BASE = {
    "go.mod": "module example.com/shop\n\ngo 1.25\n",
    "README.md": "A shop.\n",
    "main.go": MAIN,
    "shop/risk.go": RISK,
    "shop/safe.go": branching("Safe", 10),
    "shop/safe_test.go": case("shop", SAFE_TEST).replace("TestAll", "TestSafe"),
    "shop/add.go": branching("Add", 3),
    "shop/handlers.go": HANDLERS,
    "shop/shop_test.go": case("shop", SHOP_TEST),
    "extra/extra.go": branching("Extra", 1, "extra"),
    "extra/extra_test.go": EXTRA_TEST,
}
GONE = ""
"""The text of a file that the commit removes."""
FAILS = {"shop/shop_test.go": case("shop", SHOP_TEST + '\n\tt.Fatal("no")')}
EXTRA_FAILS = {"extra/extra_test.go": case("extra", 'Extra(1))\n\tt.Fatal("no")')}
FLAKY = {
    "shop/shop_test.go": case("shop", SHOP_TEST + '\n\tif _, err := os.Stat("FLAG"); err != nil {\n\t\tt.Fatal(err)\n\t}', "os")
}
HARMLESS = function("Tiny", 3)
SPLIT = function("Risk", 4) + "\n" + function("second", 4, 20) + "\n" + function("third", 4, 40)
CHANGES: Mapping[str, Mapping[str, str]] = {
    "only a text changes": {"README.md": "A larger shop.\n"},
    "the code is formatted, and comments are added": {"shop/risk.go": RISK.replace("\tif", "\t// why\n    if")},
    "a harmless function without a test is added": {"shop/tiny.go": f"package shop\n\n{HARMLESS}"},
    "a risky function without a test is added": {"shop/fresh.go": branching("Fresh", 8)},
    "a complex function with its test is added": {
        "shop/fresh.go": branching("Fresh", 8),
        "shop/fresh_test.go": case("shop", calls("Fresh", 8)).replace("TestAll", "TestFresh"),
    },
    "the risky function gets one more branch": WORSE,
    "a tested function gets one more branch": {"shop/add.go": branching("Add", 4)},
    "the test of a complex function is removed": {"shop/safe_test.go": GONE},
    "the risky function gets a test": {
        "shop/risk_test.go": case("shop", calls("Risk", 10)).replace("TestAll", "TestRisk"),
    },
    "the risky function is split into harmless ones": {"shop/risk.go": f"package shop\n\n{SPLIT}"},
    "the risky function is split, and one part stays risky": {
        "shop/risk.go": f"package shop\n\n{function('Risk', 3, 60)}\n{function('second', 8, 20)}"
    },
    "the risky function gets worse in code that does not compile": {"shop/risk.go": branching("Risk", 11) + "\nvar x int = y\n"},
    "the risky function gets worse, and a file does not parse": {**WORSE, "shop/more.go": "package shop\n\nfunc {\n"},
    "the risky function gets worse, and a test file does not parse": {**WORSE, "shop/more_test.go": "package shop\n\nfunc {\n"},
    "the risky function gets worse, and a test fails": {**WORSE, **FAILS},
    "the risky function gets worse, and a test panics": {
        **WORSE,
        "shop/shop_test.go": case("shop", SHOP_TEST + '\n\tpanic("no")'),
    },
    "a flaky test fails at its first run, and the risky function gets worse": {**WORSE, **FLAKY},
    "the same commit again, and the test passes": {**WORSE, **FLAKY},
    "a test of a complex function fails, and no code changes": FAILS,
    "a test fails, and a harmless function is added": {**EXTRA_FAILS, "extra/tiny.go": f"package extra\n\n{HARMLESS}"},
    "a test fails, and a function of complexity 31 is added": {**EXTRA_FAILS, "extra/big.go": branching("Monster", 31, "extra")},
    "a new package has a risky function and only a failing test": {
        "fresh/fresh.go": branching("Fresh", 8, "fresh"),
        "fresh/fresh_test.go": case("fresh", 'Fresh(1))\n\tt.Fatal("no")'),
    },
    "a new package has a risky function and no test": {"fresh/fresh.go": branching("Fresh", 8, "fresh")},
    "a new package has a harmless function and no test": {"fresh/fresh.go": branching("Fresh", 3, "fresh")},
    "the file of the risky function is renamed": {"shop/risk.go": GONE, "shop/danger.go": RISK},
    "the risky function moves to another package": {"shop/risk.go": GONE, "extra/risk.go": branching("Risk", 10, "extra")},
    "the risky function is renamed": {"shop/risk.go": branching("Danger", 10)},
    "the risky `main` moves to `cmd/tool`": {"main.go": GONE, "cmd/tool/main.go": MAIN},
    "the risky function gets worse, and a comment excludes it": {
        "shop/risk.go": branching("Risk", 11).replace("func", "//gocyclo:ignore\nfunc")
    },
    "the header of a generated file is put on a file by hand": {
        "shop/risk.go": f"// Code generated by me. DO NOT EDIT.\n\n{branching('Risk', 11)}"
    },
    "a build tag excludes a file": {"shop/risk.go": f"//go:build later\n\n{branching('Risk', 11)}"},
    "`go.mod` ignores a directory": {"go.mod": BASE["go.mod"] + "\nignore ./extra\n"},
    "a table of handlers gets a complex one without a test": {"shop/handlers.go": COMPLEX},
    "a table of handlers gets a complex one with its test": {
        "shop/handlers.go": COMPLEX,
        "shop/more_test.go": case("shop", calls('handlers["b"]', 10)).replace("TestAll", "TestMore"),
    },
}
QUICK = frozenset(
    {
        "a risky function without a test is added",
        "the risky function gets worse, and a test fails",
        "the risky `main` moves to `cmd/tool`",
        "a table of handlers gets a complex one without a test",
    }
)
"""The changes of the middle tier."""


def documented() -> Mapping[str, tuple[str, str]]:
    """The verdict and the first listed function of each change, from the table of the document."""
    section = DOCUMENT.read_text().partition("### Examples\n")[2].partition("\n###")[0]
    return {found[1]: (found[2], found[3]) for line in section.splitlines() if (found := _ROW.fullmatch(line))}


@attrs.frozen
class Repository:
    """A repository with the commit BASE on `main`, its measurement, and a flag for the flaky test."""

    root: Path
    flag: Path
    environment: Mapping[str, str]

    def git(self, *arguments: str) -> None:
        who = ["-c", "user.name=A", "-c", "user.email=a@example.com"]
        subprocess.run(["git", *who, *arguments], cwd=self.root, check=True)

    def commit(self, files: Mapping[str, str], branch: str) -> None:
        """Commit files on a new branch that leaves `main`."""
        self.git("checkout", "--quiet", "--force", "-B", branch)
        for name, text in files.items():
            file = self.root / name
            file.parent.mkdir(parents=True, exist_ok=True)
            if text == GONE:
                file.unlink()
            else:
                file.write_text(text.replace("FLAG", str(self.flag)))
        self.git("add", "--all")
        self.git("commit", "--quiet", "--allow-empty", "--message=one")

    def check(self, *arguments: str) -> tuple[int, Any, MeasuredProject]:
        """Return the exit code of `gctd check`, the judgement in its document, and the measurement in it."""
        options = ("check", "--json", "--sandbox", "off", *arguments)
        done = warm.run("gctd", *options, environment=self.environment, directory=self.root, seconds=240)
        assert done.stdout, done.stderr
        [project] = json.loads(done.stdout)["projects"]
        return done.returncode, project, msgspec.convert(project, type=MeasuredProject)


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> tuple[Repository, MeasuredProject]:
    folder = tmp_path_factory.mktemp("verdicts")
    asyncio.run(go_library.give_packages(folder / "cache" / "check" / "go" / "build"))
    bare = {name: value for name, value in os.environ.items() if not name.startswith("GCTD_")}
    made = Repository(folder / "shop", folder / "flag", {**bare, "GCTD_CACHE_DIRECTORY": str(folder / "cache")})
    made.root.mkdir()
    subprocess.run(["git", "init", "--quiet", "--initial-branch=main"], cwd=made.root, check=True)
    made.commit(BASE, "main")
    return made, made.check("--absolute")[2]


async def by_the_server(before: MeasuredProject, after: MeasuredProject) -> GateVerdict:
    """The server's judgement of the same two measurements, with the usual rules."""
    blobs, log, nothing = MemoryBlobs(), MemoryLog(REGISTRY), cast("Any", None)

    async def stored(measured: MeasuredProject) -> AnalysisView:
        body = await blobs.put(report_format.encode(measured.report))
        return attrs.evolve(measured.analysis, report_digest=body.digest)

    base, head = await stored(before), await stored(after)
    tables = Tables(base=base, looks=1)
    queries = cast("TrackerQueries", tables)
    baselines = Baselines(nothing, queries, nothing, nothing, nothing)
    judging = Judging(log, Commands(log), queries, blobs, nothing, baselines, caught_up=tables.catch_up)
    return (await judging.look(head, base.commit_sha, Rules(threshold=30.0))).verdict


def first_listed(project: Any) -> str:
    """The first function that the text of `gctd check` lists."""
    lists: Sequence[tuple[str, str]] = (
        ("functions", ""),
        *(("unmeasured", "not measured"), ("excluded", "excluded"), ("worsened", "worse"), ("fixed", "fixed")),
    )
    for name, word in lists:
        for one in project[name]:
            return f"{word or ' '.join(one['checks'])} {one['function']}"
    return ""


def names(verdict: GateVerdict) -> Mapping[str, Sequence[str]]:
    return {
        "functions": [one.after.function for one in verdict.offenders],
        "unmeasured": [one.after.function for one in verdict.unmeasured],
        "excluded": [one.entry.function for one in verdict.excluded],
        "worsened": [one.after.function for one in verdict.worsened],
        "fixed": [one.entry.function for one in verdict.fixed],
    }


def test_the_table_of_the_document_has_these_changes() -> None:
    assert list(documented()) == list(CHANGES)


@pytest.mark.timeout(400)
@pytest.mark.parametrize("change", [pytest.param(one, marks=() if one in QUICK else pytest.mark.long) for one in CHANGES])
async def test_a_change_has_the_verdict_of_the_table_by_check_and_by_the_server(
    repository: tuple[Repository, MeasuredProject], change: str
) -> None:
    made, base = repository
    made.flag.unlink(missing_ok=True)
    if change == "the same commit again, and the test passes":
        made.flag.touch()
    made.git("checkout", "--quiet", "--force", "main")
    made.commit(CHANGES[change], "change")
    code, project, head = await asyncio.to_thread(made.check, "--base", "main")
    assert (project["result"], first_listed(project)) == documented()[change], project["reason"]
    assert code == {"passed": 0, "failed": 1, "unknown": 8}[project["result"]]
    served = await by_the_server(base, head)
    assert (served.result.value, served.reason) == (project["result"], project["reason"])
    listed = names(served)
    assert {name: [one["function"] for one in project[name]] for name in listed} == listed
