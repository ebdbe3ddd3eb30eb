"""Small real Go repositories, made with git in a temporary directory; nothing in them needs a network.

`make(directory, *, kind)` gives one of KINDS; `GoRepo.write` and `GoRepo.commit` take it further. Commits have fixed authors and
times: the same files give the same commit ids.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

import attrs

GIT_ENVIRONMENT = {
    "PATH": os.environ.get("PATH", os.defpath),
    "HOME": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_AUTHOR_NAME": "Gopher",
    "GIT_AUTHOR_EMAIL": "gopher@example.com",
    "GIT_COMMITTER_NAME": "Gopher",
    "GIT_COMMITTER_EMAIL": "gopher@example.com",
}


@attrs.define
class GoRepo:
    """A git repository with a work tree at `path`."""

    path: Path
    _commits: int = attrs.field(default=0, init=False)

    @property
    def url(self) -> str:
        """Its address for a tracker that allows local repositories."""
        return self.path.as_uri()

    def git(self, *arguments: str) -> str:
        """Run git in it; its output without the last line break."""
        when = f"{1_700_000_000 + 60 * self._commits} +0000"
        environment = {**GIT_ENVIRONMENT, "GIT_AUTHOR_DATE": when, "GIT_COMMITTER_DATE": when}
        done = subprocess.run(["git", *arguments], cwd=self.path, env=environment, check=True, capture_output=True, text=True)
        return done.stdout.rstrip("\n")

    def write(self, files: Mapping[str, str]) -> GoRepo:
        """Write files (path to text); not yet committed."""
        for name, text in files.items():
            path = self.path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return self

    def commit(self, message: str = "change") -> str:
        """Commit all that has changed; the commit's id."""
        self._commits += 1
        self.git("add", "--all")
        self.git("commit", "--quiet", "--allow-empty", "--message", message)
        return self.head()

    def head(self) -> str:
        """The id of the commit that is checked out."""
        return self.git("rev-parse", "HEAD")


def module(name: str, *, go: str = "1.21") -> str:
    """The text of a go.mod."""
    return f"module {name}\n\ngo {go}\n"


def tested(package: str) -> dict[str, str]:
    """A package of two functions, one of them half covered by its test: names relative to the package's directory."""
    return {f"{package}.go": _TESTED.replace("PACKAGE", package), f"{package}_test.go": _TEST.replace("PACKAGE", package)}


def with_test(package: str, body: str, *imports: str) -> dict[str, str]:
    """A package with one function, and a test with these statements that needs these imports."""
    lines = "".join(f'\t"{path}"\n' for path in sorted((*imports, "testing")))
    statements = "".join(f"\t{line}\n" for line in body.splitlines())
    return {
        f"{package}.go": f"package {package}\n\n// One is 1.\nfunc One() int {{ return 1 }}\n",
        f"{package}_test.go": (
            f"package {package}\n\nimport (\n{lines})\n\nfunc TestOne(t *testing.T) {{\n\tOne()\n{statements}}}\n"
        ),
    }


def noting(file: Path) -> str:
    """Statements of a test that append a point to a file; they need `os`."""
    return _NOTING.replace("FILE", str(file))


def under(directory: str, files: Mapping[str, str]) -> dict[str, str]:
    """The same files one directory further down."""
    return {f"{directory}/{name}": text for name, text in files.items()}


def sleeping(marker: str) -> dict[str, str]:
    """Return the files of a module whose test leaves three `sleep <marker>` processes behind, and then hangs.

    One sleeps in the test's process group, one in a new session, and one in a new session with its parent gone. When all are
    there the test writes the file `started` into TMPDIR.
    """
    return {
        "go.mod": module("example.com/sleeping"),
        **with_test("sleeping", _SLEEPING.replace("MARKER", marker), "os", "os/exec", "syscall", "time"),
    }


_TESTED = """package PACKAGE

// Sign is covered on one of its two ways.
func Sign(x int) int {
\tif x > 0 {
\t\treturn 1
\t}
\treturn -1
}

// Never is not covered.
func Never(x int) string {
\tswitch {
\tcase x > 10 && x < 20:
\t\treturn "teen"
\tcase x > 20 || x < -20:
\t\treturn "far"
\t}
\treturn "near"
}
"""

_TEST = """package PACKAGE

import "testing"

func TestSign(t *testing.T) {
\tif Sign(3) != 1 {
\t\tt.Fatal("sign")
\t}
}
"""

_NOTING = """\
file, err := os.OpenFile("FILE", os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
if err != nil {
	t.Fatal(err)
}
defer file.Close()
if _, err := file.WriteString("."); err != nil {
	t.Fatal(err)
}
"""
_SLEEPING = """exec.Command("sleep", "MARKER").Start()
own := exec.Command("sleep", "MARKER")
own.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
own.Start()
exec.Command("sh", "-c", "setsid sleep MARKER & exit 0").Run()
os.WriteFile(os.Getenv("TMPDIR")+"/started", nil, 0o644)
time.Sleep(time.Hour)
"""

_API = """package api

import "example.com/ws/lib"

// Up is lib.Sign.
func Up(x int) int { return lib.Sign(x) }
"""

KINDS: dict[str, Mapping[str, str]] = {
    "single": {"go.mod": module("example.com/single"), **tested("single")},
    "multi": {
        "README.md": "two modules, none at the root\n",
        **under("alpha", {"go.mod": module("example.com/multi/alpha"), **tested("alpha")}),
        **under("beta", {"go.mod": module("example.com/multi/beta"), **tested("beta")}),
    },
    "workspace": {
        "go.work": 'go 1.21\n\nuse (\n\t./api // quoted and not\n\t"./lib"\n)\n',
        **under("lib", {"go.mod": module("example.com/ws/lib"), **tested("lib")}),
        **under(
            "api",
            {
                "go.mod": module("example.com/ws/api") + "\nrequire example.com/ws/lib v0.0.0\n",
                "api.go": _API,
                "api_test.go": 'package api\n\nimport "testing"\n\nfunc TestUp(t *testing.T) { Up(1) }\n',
            },
        ),
        **under("tools", {"go.mod": module("example.com/ws/tools"), **tested("tools")}),
    },
    "nested": {
        "go.mod": module("example.com/nested"),
        **tested("nested"),
        **under("inner", tested("inner")),
        **under("plugin", {"go.mod": module("example.com/nested/plugin"), **tested("plugin")}),
        **under("plugin/deep", {"go.mod": module("example.com/nested/plugin/deep"), **tested("deep")}),
        **under("testdata/ignored", {"go.mod": module("example.com/ignored"), **tested("ignored")}),
        **under("vendor/example.org/dep", {"go.mod": module("example.org/dep"), **tested("dep")}),
        **under("_old", {"go.mod": module("example.com/old"), **tested("old")}),
        **under(".hidden", {"go.mod": module("example.com/hidden"), **tested("hidden")}),
        **under("node_modules/x", {"go.mod": module("example.com/node"), **tested("x")}),
    },
    "failing": {
        "go.mod": module("example.com/failing"),
        **under("good", tested("good")),
        **under("bad", with_test("bad", 't.Error("as it must")')),
        **under("panics", with_test("panics", 'panic("as it must")')),
        **under("quits", with_test("quits", "os.Exit(3)", "os")),
        **under("untested", {"untested.go": "package untested\n\n// Two is 2.\nfunc Two() int { return 2 }\n"}),
        **under("broken", {"broken.go": "package broken\n\nfunc Broken() int { return undefinedName }\n"}),
    },
    "panicking": {"go.mod": module("example.com/panicking"), **with_test("panicking", 'panic("as it must")')},
    "slow": {
        "go.mod": module("example.com/slow"),
        **under("quick", tested("quick")),
        **under("slow", with_test("slow", "time.Sleep(time.Hour)", "time")),
    },
    "empty": {"README.md": "no Go here\n"},
}
"""Name of a kind of repository to its files."""

NEEDING = {
    "go.mod": module("example.com/x") + "\nrequire example.org/dep v1.0.0\n",
    "go.sum": "example.org/dep v1.0.0 h1:g61tztE5qeGQ89tm6NTjjM9VPIm088od1l6aSorWRWg=\n"
    "example.org/dep v1.0.0/go.mod h1:NqM8EUOU14njkJ3fqMW+pc6Ldnwhi/IjpwHt7yyuwOQ=\n",
    **under("a", tested("a")),
    **under("b", with_test("b", "_ = dep.X", "example.org/dep")),
    "c/c.go": 'package c\n\nimport "example.org/dep"\n\n// X is X.\nvar X = dep.X\n',
}
"""The files of a repository: the package a needs nothing; the tests of b, and c, need a module that is nowhere."""


def make(directory: Path, *, kind: str = "single", files: Mapping[str, str] | None = None) -> GoRepo:
    """Make a repository with one commit on the branch `main`, of one of KINDS, or with the given files."""
    directory.mkdir(parents=True, exist_ok=True)
    repo = GoRepo(directory)
    repo.git("init", "--quiet", "--initial-branch", "main")
    repo.write(KINDS[kind] if files is None else files)
    repo.commit("first")
    return repo
