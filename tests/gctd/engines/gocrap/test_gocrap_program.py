"""The engine `go-crap`: the program is run on the staged profile, and its report is taken over as it is."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import attrs
import pytest

from gctd.domain.errors import BadInput
from gctd.domain.options import parse_crap_args
from gctd.engines.engine import EngineFailed, EngineInput, EngineLost
from gctd.engines.measurement import PackageFacts, TestFacts
from gctd.engines.native import NativeEngine
from gctd.engines.registry import NAMES, engine_named, engines
from gctd.engines.report import FunctionEntry, Report
from gctd.engines.score import shown
from tests.gctd.engines.modules import MODULE, PROFILE, engine_input, write_gocrap_fixture, write_module
from tests.support.tracker.gocrap import install

PROGRAMS = ("stand-in", *(("installed",) if shutil.which("go-crap") else ()))
"""The stand-in, and the program itself if this host has it."""


@pytest.fixture(params=PROGRAMS)
def program(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A go-crap on PATH."""
    if request.param == "stand-in":
        install(tmp_path / "bin")
        monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}")


def with_script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, scan: str) -> None:
    """A go-crap on PATH whose scan is this piece of shell, with the report's path in `$out`."""
    script = f'if [ "$1" = version ]; then echo v0.5.1; exit; fi\nwhile [ "$1" != -o ]; do shift; done; out="$2"\n{scan}'
    install(tmp_path / "bin", script)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}")


def analyse(given: EngineInput) -> Report:
    return engine_named("go-crap").analyse(given)


@pytest.fixture
def module(tmp_path: Path) -> EngineInput:
    write_gocrap_fixture(tmp_path / "checkout")
    return engine_input(tmp_path / "checkout")


def numbers(found: Report) -> list[tuple[object, ...]]:
    def of(e: FunctionEntry) -> tuple[object, ...]:
        return (e.file, e.line, e.package, e.function, e.name, e.receiver, e.cyclomatic, e.coverage, e.crap)

    return sorted((of(entry) for entry in found.entries), key=str)


@pytest.mark.real
@pytest.mark.usefixtures("program")
@pytest.mark.parametrize("flags", [(), ("--threshold=5.5",), ("--exclude=String", "--min=2.5"), ("--missing=optimistic",)])
def test_native_compat_gives_its_numbers_to_the_last_bit(module: EngineInput, flags: tuple[str, ...]) -> None:
    given = attrs.evolve(module, options=parse_crap_args(flags))
    found, ours = analyse(given), NativeEngine(compat=True).analyse(given)
    assert numbers(found) == numbers(ours)
    assert found.summary == ours.summary
    assert found.summary.total_funcs > 0


@pytest.mark.real
@pytest.mark.usefixtures("program")
@pytest.mark.parametrize("flags", [("--min=6",), ("--top=3",)])
def test_min_and_top_shorten_the_list_and_leave_the_counts_alone(module: EngineInput, flags: tuple[str, ...]) -> None:
    module = attrs.evolve(module, tests=TestFacts(packages=(PackageFacts(path=f"{MODULE}/core", outcome="ok"),)))
    everything, options = analyse(module), parse_crap_args(flags)
    found = analyse(attrs.evolve(module, options=options))
    assert found.entries == shown(everything.entries, options)
    assert 0 < len(found.entries) < len(everything.entries)
    assert everything.measured is not None
    assert everything.measured.total_funcs > 0
    assert (found.summary, found.measured, found.states) == (everything.summary, everything.measured, everything.states)


@pytest.mark.real
@pytest.mark.usefixtures("program")
def test_the_report_names_the_program_and_what_it_does_not_say_itself(module: EngineInput) -> None:
    found = analyse(module)
    assert found.engine == "go-crap"
    assert (found.engine_version, found.crap_version) == (engines()["go-crap"].version, f"v{engines()['go-crap'].version}")
    assert ("syntax", "bad/bad.go") in {(warning.kind, warning.path) for warning in found.warnings}
    method = next(entry for entry in found.entries if entry.function == "*B.Open")
    assert (method.line, method.end_line, method.coverage, round(method.stmt_coverage or 0, 1)) == (43, 48, 0.0, 66.7)


@pytest.mark.real
@pytest.mark.usefixtures("program")
@pytest.mark.parametrize("left", ["nothing", "rubbish", "link"])
def test_without_a_profile_everything_is_zero_and_no_test_is_run(module: EngineInput, tmp_path: Path, left: str) -> None:
    staged, target = module.module_dir / PROFILE, tmp_path / "target"
    staged.unlink()
    target.write_text("not ours")
    if left == "rubbish":
        staged.write_text("mode: set\n")
    elif left == "link":
        staged.symlink_to(target)
    found = analyse(attrs.evolve(module, profile=None))
    assert {entry.coverage for entry in found.entries} == {0.0}
    assert found.summary.total_funcs == 37
    assert target.read_text() == "not ours"


def test_where_it_is_not_installed_it_is_not_offered_and_the_reason_says_so(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert set(engines()) == {"native", "native-compat"}
    assert "go-crap" in NAMES
    with pytest.raises(BadInput, match="go-crap is not on this worker's PATH; native-compat gives its numbers without it"):
        engine_named("go-crap")


@pytest.mark.real
@pytest.mark.parametrize("version", ["echo dev", "exit 1", "echo v0.5.1; exit 1"])
def test_a_program_that_does_not_say_its_version_is_not_offered(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, version: str
) -> None:
    install(tmp_path, version)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert set(engines()) == {"native", "native-compat"}


@pytest.mark.real
@pytest.mark.parametrize(
    ("scan", "reason"),
    [
        ("echo usage; echo 'Error: coverage: no luck' >&2; exit 1", "go-crap: coverage: no luck"),
        ("exit 1", "go-crap: it failed without a reason"),
        ("exit 0", "go-crap wrote no report"),
        ("echo rubbish >$out", "the report of go-crap cannot be read: "),
        ("echo '{}' >$out", "the report of go-crap cannot be read: "),
        (
            """echo '{"version":"2.0.0","summary":{"average":0,"combined":0,"exceeded":0,"total_funcs":0},"entries":[]}' >$out""",
            "the report of go-crap has the format 2.0.0, which is not known",
        ),
    ],
)
def test_what_goes_wrong_is_told(
    module: EngineInput, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, scan: str, reason: str
) -> None:
    with_script(tmp_path, monkeypatch, scan)
    with pytest.raises(EngineFailed) as caught:
        analyse(module)
    assert str(caught.value).startswith(reason)


@pytest.mark.real
def test_a_program_that_was_killed_may_be_tried_again(
    module: EngineInput, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_script(tmp_path, monkeypatch, "kill -9 $$")
    with pytest.raises(EngineLost, match="go-crap was ended by signal 9"):
        analyse(module)


@pytest.mark.real
def test_a_report_without_entries_and_logs_on_standard_output_are_no_trouble(
    module: EngineInput, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    summary = '{"version":"1.1.0","summary":{"average":0,"combined":0,"exceeded":0,"total_funcs":0},"entries":null}'
    with_script(tmp_path, monkeypatch, f"echo level=INFO; echo '{summary}' >$out")
    assert analyse(module).entries == ()
    assert capfd.readouterr() == ("", "")


@pytest.mark.real
def test_it_gets_no_environment_but_the_least(module: EngineInput, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GCTD_AUTH_TOKEN", "very secret")
    with_script(tmp_path, monkeypatch, f"env >{tmp_path}/env; exit 1")
    with pytest.raises(EngineFailed):
        analyse(module)
    assert "secret" not in (tmp_path / "env").read_text()


@pytest.mark.real
@pytest.mark.parametrize(("link", "target"), [("sub/loop", "."), ("core/out", "../../outside")])
def test_a_link_that_it_would_follow_round_or_out_is_refused(
    module: EngineInput, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, link: str, target: str
) -> None:
    write_module(tmp_path / "outside", {"p/f.go": "package p\n\nfunc Secret() {}\n"})
    with_script(tmp_path, monkeypatch, f"touch {tmp_path}/ran; exit 1")
    (module.module_dir / link).symlink_to(target)
    with pytest.raises(EngineFailed, match=f"go-crap would follow {link}, a symbolic link .*: use another engine"):
        analyse(module)
    assert not (tmp_path / "ran").exists()
