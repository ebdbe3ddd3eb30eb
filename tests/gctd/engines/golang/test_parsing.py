"""Parsing in several processes, and the cache of its results."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import attrs
import pytest
import tree_sitter_go

from gctd.engines import report
from gctd.engines.__main__ import FAILED, EngineRequest
from gctd.engines.engine import EngineInput, EngineLimits
from gctd.engines.golang import parse_cache as parsecache
from gctd.engines.golang import parsing
from gctd.engines.golang.complexity import SourceFile, analyse_source
from gctd.engines.golang.parse_cache import make_room
from gctd.engines.native import NativeEngine
from gctd.engines.report import Report
from tests.gctd.engines.modules import engine_input, write_gocrap_fixture, write_module

F = "package p\n\nfunc F(x int) int {\n\tif x > 0 {\n\t\treturn 1\n\t}\n\treturn 0\n}\n"


def analyse(given: EngineInput, *, compat: bool = False) -> Report:
    return NativeEngine(compat=compat).analyse(given)


def by_command(given: EngineInput, directory: Path, engine: str = "native") -> subprocess.CompletedProcess[str]:
    """The engine as a process, as workers run it; the report is `report.json` in the directory."""
    (directory / "order.json").write_bytes(EngineRequest(engine=engine, given=given).written())
    command = [sys.executable, "-m", "gctd.engines", str(directory / "order.json"), str(directory / "report.json")]
    return subprocess.run(command, check=False, capture_output=True, text=True, timeout=60)


@pytest.fixture
def module(tmp_path: Path) -> EngineInput:
    """The module of the fixture, with a cache next to its checkout."""
    write_gocrap_fixture(tmp_path / "checkout")
    return attrs.evolve(engine_input(tmp_path / "checkout"), cache=tmp_path / "cache" / "a.parsed")


@pytest.fixture
def parses(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The paths of the module's files that are really parsed."""
    paths: list[str] = []

    def counted(path: str, source: bytes, *, nesting: int) -> SourceFile:
        if path.endswith(".go"):
            paths.append(path)
        return analyse_source(path, source, nesting=nesting)

    monkeypatch.setattr(parsing, "analyse_source", counted)
    return paths


@pytest.mark.parametrize("compat", [False, True])
def test_with_the_cache_the_report_is_the_same_and_only_changed_files_are_parsed(
    module: EngineInput, parses: list[str], *, compat: bool
) -> None:
    without = analyse(attrs.evolve(module, cache=None), compat=compat)
    assert analyse(module, compat=compat) == without
    parses.clear()
    assert analyse(module, compat=compat) == without
    assert parses == []
    changed = module.module_dir / "sub" / "ok.go"
    changed.write_text(changed.read_text().replace("x > 0", "x > 0 && x < 9"))
    found = analyse(module, compat=compat)
    assert parses == ["sub/ok.go"]
    assert found == analyse(attrs.evolve(module, cache=None), compat=compat) != without


def test_a_source_is_known_again_under_another_name_but_not_where_its_directives_are_relative_to_it(
    module: EngineInput, parses: list[str]
) -> None:
    analyse(module)
    (module.module_dir / "sub" / "ok.go").rename(module.module_dir / "sub" / "fine.go")
    (module.module_dir / "line").rename(module.module_dir / "moved")
    parses.clear()
    found = analyse(module)
    assert parses == ["moved/l.go"]
    assert found == analyse(attrs.evolve(module, cache=None))


def test_a_file_that_is_no_go_is_told_from_the_cache_too(module: EngineInput, parses: list[str]) -> None:
    first = analyse(module)
    parses.clear()
    assert analyse(module).warnings == first.warnings
    assert [(warning.kind, warning.path) for warning in first.warnings if warning.kind == "syntax"] == [("syntax", "bad/bad.go")]
    assert parses == []


def test_other_limits_do_not_take_results_from_the_cache(module: EngineInput) -> None:
    first, limits = analyse(module), EngineLimits(nesting=10)
    found = analyse(attrs.evolve(module, limits=limits))
    assert found == analyse(attrs.evolve(module, limits=limits, cache=None)) != first


def _flip(file: Path, at: int) -> None:
    content = bytearray(file.read_bytes())
    content[at] ^= 0x40
    file.write_bytes(content)


def test_whatever_byte_of_the_cache_is_damaged_the_report_is_the_same_and_the_cache_whole_again(
    module: EngineInput,
) -> None:
    assert module.cache is not None
    without = analyse(module)
    whole = module.cache.read_bytes()
    for at in range(0, len(whole), 7):
        _flip(module.cache, at)
        assert analyse(module) == without, f"byte {at}"
        assert module.cache.read_bytes() == whole, f"byte {at}"


def test_a_damaged_entry_is_named(module: EngineInput, caplog: pytest.LogCaptureFixture) -> None:
    assert module.cache is not None
    analyse(module)
    at = module.cache.read_bytes().index(b"TypeSw")
    _flip(module.cache, at)
    analyse(module)
    assert caplog.messages == [f"damaged entry in the cache of parsed files not used: {module.cache}"]


@pytest.mark.parametrize("content", [b"", b"rubbish", b"\x92\xc4\x00"])
def test_a_file_that_is_no_cache_is_replaced(module: EngineInput, content: bytes) -> None:
    assert module.cache is not None
    without = analyse(module)
    whole = module.cache.read_bytes()
    module.cache.write_bytes(content)
    assert analyse(module) == without
    assert module.cache.read_bytes() == whole


def test_a_cache_of_another_parser_is_not_used(module: EngineInput, monkeypatch: pytest.MonkeyPatch, parses: list[str]) -> None:
    analyse(module)
    parses.clear()
    monkeypatch.setattr(parsecache, "parser_version", lambda: b"another")
    analyse(module)
    assert "core/core.go" in parses


def test_the_version_of_the_parser_changes_with_its_code_and_its_libraries(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    before = parsecache.parser_version.__wrapped__()
    (tmp_path / "_binding.so").write_bytes(b"another")
    monkeypatch.setattr(tree_sitter_go, "__file__", str(tmp_path / "__init__.py"))
    assert parsecache.parser_version.__wrapped__() != before
    monkeypatch.undo()
    for name in parsecache.PARSER:
        source = Path(parsecache.__file__).with_name(f"{name}.py").read_bytes()
        (tmp_path / f"{name}.py").write_bytes(source + b"# changed" if name == "ignores" else source)
    monkeypatch.setattr(parsecache, "__file__", str(tmp_path / "parsecache.py"))
    assert parsecache.parser_version.__wrapped__() != before


def test_a_link_in_the_place_of_the_cache_is_not_read_and_not_written_through(module: EngineInput, tmp_path: Path) -> None:
    assert module.cache is not None
    without = analyse(module)
    other = tmp_path / "other"
    other.write_bytes(b"not ours")
    module.cache.unlink()
    module.cache.symlink_to(other)
    assert analyse(module) == without
    assert other.read_bytes() == b"not ours"
    assert not module.cache.is_symlink()


def test_a_cache_that_cannot_be_written_does_not_keep_a_report_from_being_made(module: EngineInput, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    found = analyse(attrs.evolve(module, cache=tmp_path / "file" / "a.parsed"))
    assert found == analyse(attrs.evolve(module, cache=None))


def test_the_caches_of_all_projects_take_up_no_more_than_allowed_and_those_used_last_stay(tmp_path: Path) -> None:
    for number in range(5):
        file = tmp_path / f"{number}" / "sources"
        file.parent.mkdir()
        file.write_bytes(bytes(100))
        os.utime(file, (number, number))
    os.utime(tmp_path / "0" / "sources", (9, 9))
    make_room(tmp_path, 250)
    assert sorted(project.name for project in tmp_path.iterdir()) == ["0", "4"]


def test_an_analysis_from_the_cache_counts_as_its_use(module: EngineInput) -> None:
    assert module.cache is not None
    analyse(module)
    os.utime(module.cache, (1, 1))
    analyse(module)
    assert module.cache.stat().st_mtime > 1


def test_a_cache_that_would_be_too_large_is_not_kept(module: EngineInput, monkeypatch: pytest.MonkeyPatch) -> None:
    assert module.cache is not None
    monkeypatch.setattr(parsecache, "LARGEST", 100)
    analyse(module)
    assert not module.cache.exists()


def test_a_source_that_is_no_longer_there_leaves_the_cache(module: EngineInput) -> None:
    assert module.cache is not None
    analyse(module)
    assert b"TypeSw" in module.cache.read_bytes()
    (module.module_dir / "core" / "core.go").unlink()
    analyse(module)
    assert b"TypeSw" not in module.cache.read_bytes()


def many(directory: Path) -> EngineInput:
    """A module with more files than one process is left with, some of which cannot be parsed or read."""
    files = {f"p{n % 9}/f{n}.go": F.replace("F(", f"F{n}(") for n in range(parsing.FEW_FILES + 50)}
    files |= {f"bad/b{n}.go": "package" for n in range(3)}
    write_module(directory, files)
    (directory / "bad" / "link.go").symlink_to("b0.go")
    return attrs.evolve(engine_input(directory, profiled=False), processes=3)


@pytest.mark.real
def test_several_processes_give_the_report_of_one(tmp_path: Path) -> None:
    given = many(tmp_path / "checkout")
    one = analyse(attrs.evolve(given, processes=1))
    assert one.counts.files_skipped == 3
    kept = attrs.evolve(given, cache=tmp_path / "cache" / "a.parsed")
    for _ in ("cold", "warm"):
        done = by_command(kept, tmp_path)
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
        assert report.decode((tmp_path / "report.json").read_bytes()) == one


@pytest.mark.real
def test_a_parsing_process_that_is_killed_ends_the_analysis_with_a_reason(tmp_path: Path) -> None:
    given = many(tmp_path / "checkout")
    killed = "import os, signal; os.getpid() != int(os.environ['ENGINE']) and os.kill(os.getpid(), signal.SIGKILL)"
    program = (
        "import os, sys; from pathlib import Path; os.environ['ENGINE'] = str(os.getpid())\n"
        "from gctd.engines.golang import parsing; from gctd.engines.__main__ import main\n"
        f"parsing.analyse_source = lambda *_, **__: exec({killed!r})\n"
        "sys.exit(main(Path(sys.argv[1]), Path(sys.argv[2])))\n"
    )
    order = tmp_path / "order.json"
    order.write_bytes(EngineRequest(engine="native", given=given).written())
    command = [sys.executable, "-c", program, str(order), str(tmp_path / "report.json")]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=60)
    assert done.returncode not in {0, FAILED}
    assert done.stderr.endswith("EngineLost: a process that parses was ended, perhaps for want of memory\n")
