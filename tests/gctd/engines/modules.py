"""Go modules for the tests of the engines, written out into a directory."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from gctd.domain.options import CrapOptions
from gctd.engines.engine import EngineInput

FIXTURE = Path(__file__).parent / "fixture" / "gocrap"
MODULE = "example.com/fx"
PROFILE = "cover.out"


def write_module(directory: Path, files: Mapping[str, str], *, profile: str | None = None, go_mod: str | None = None) -> None:
    """Write a module's files (path to text), its go.mod and, if given, a cover profile."""
    texts = {"go.mod": go_mod or f"module {MODULE}\n\ngo 1.26\n", **files}
    if profile is not None:
        texts[PROFILE] = profile
    for name, text in texts.items():
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def engine_input(
    directory: Path, *, profiled: bool = True, nested: tuple[str, ...] = (), options: CrapOptions | None = None
) -> EngineInput:
    """The input for a module that `write_module` wrote, alone in its repository."""
    return EngineInput(
        module_dir=directory,
        repository=directory,
        module_path=MODULE,
        profile=directory / PROFILE if profiled else None,
        nested=nested,
        options=options or CrapOptions(),
    )


def write_gocrap_fixture(directory: Path) -> None:
    """The module on which go-crap 0.5.1's answers were measured, with everything that it treats in its own way."""
    z = (FIXTURE / "z.go").read_text()
    write_module(
        directory,
        {
            "core/core.go": (FIXTURE / "core.go").read_text(),
            "gen/gen.go": (FIXTURE / "gen.go").read_text(),
            "a/x/y/z.go": z,
            "tag/x/y/z.go": "//go:build never\n\n" + z,
            "nested/n.go": z,
            "nested/go.mod": "module example.com/fx/nested\n\ngo 1.26\n",
            "sub/_skip/z.go": z,
            "sub/.hid/z.go": z,
            "vendorx/vendor/z.go": z,
            "testdata/z.go": z,
            "br[1]/z.go": z,
            "sub/_under.go": "package sub\n\nfunc Under(x int) bool { return x > 0 || x < -1 }\n",
            "sub/.dot.go": "package sub\n\nfunc Dot(x int) bool { return x > 0 || x < -1 }\n",
            "sub/asm_arm64.go": "package sub\n\nfunc Asm(x int) bool\n",
            "sub/ok.go": "package sub\n\nfunc Ok(x int) bool { return x > 0 }\n",
            "bad/bad.go": "package bad\n\nfunc Bad(x int) int {\n\tif x > 0 {\n",
            "line/l.go": z.replace("package y\n\n", "package line\n\n//line foo.y:100\n").replace("Z", "L"),
            "line/foo.y": "%%\n",
        },
        profile=(FIXTURE / "cover.out").read_text(),
    )
    (directory / "sub" / "lnk").symlink_to("../a")
