"""The engine `go-crap`: the program itself, if it is on PATH, on the profile that was staged for it."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path

import attrs
import msgspec

from gctd.engines.engine import EngineFailed, EngineInput, EngineLost
from gctd.engines.golang.files import open_regular
from gctd.engines.native import NativeEngine
from gctd.engines.report import FunctionEntry, Report, ReportSummary
from gctd.engines.score import measured_summary, shown, states_of
from gctd.engines.state import State

NAME = "go-crap"
STAGED = ".go-crap-cover.out"
"""The profile's name in the module's directory, from which go-crap derives the module."""
LARGEST = 512 << 20
"""Bytes that its report may have."""
_VERSION = re.compile(r"v?([0-9]+\.[0-9]+\.[0-9]+)[\w.+-]*")
_FORMAT = "1."
_SHORT = 10.0


class _Entry(msgspec.Struct, frozen=True, gc=False):
    file: str
    function: str
    package: str
    line: int
    cyclomatic: int
    crap: float
    receiver: str = ""
    coverage: float | None = None


class _Document(msgspec.Struct, frozen=True):
    version: str
    summary: ReportSummary
    entries: tuple[_Entry, ...] | None


_decode = msgspec.json.Decoder(_Document).decode


@attrs.frozen
class GocrapProgram:
    """Scores a module with a go-crap that is installed; `version` is what it says of itself."""

    program: Path
    version: str

    @property
    def name(self) -> str:
        return NAME

    def analyse(self, given: EngineInput) -> Report:
        """Return the report of one module. Without a profile it gets an empty one: it would run the tests otherwise.

        The native engine in its compatibility mode adds the facts that go-crap does not report: the end of a function, its
        statement coverage, and the files that could not be parsed. Raises EngineFailed, EngineLost.
        """
        whole = attrs.evolve(given, options=given.options.unshortened())
        beside = NativeEngine(compat=True).analyse(whole)
        _check_links(beside)
        found = self._scan(whole, given.profile or _empty_profile(given.module_dir))
        places = {(entry.file, entry.line, entry.function): entry for entry in beside.entries}
        entries = [_entry(entry, places.get((entry.file, entry.line, entry.function))) for entry in found.entries or ()]
        threshold = given.options.threshold
        return attrs.evolve(
            beside,
            engine=NAME,
            engine_version=self.version,
            crap_version=f"v{self.version}",
            summary=found.summary,
            entries=shown(entries, given.options),
            measured=measured_summary(entries, threshold),
            states=states_of(entries, len(beside.excluded)),
        )

    def _scan(self, given: EngineInput, profile: Path) -> _Document:
        import subprocess  # noqa: PLC0415 - slow, and the other engines do without it

        with tempfile.TemporaryDirectory() as folder:
            written, said = Path(folder) / "report.json", Path(folder) / "said"
            command = [str(self.program), "scan", "--coverage-profile", str(profile.absolute())]
            command += ["--format", "json", "-o", str(written), *given.options.argv()]
            with said.open("wb") as errors:  # it logs to its standard output
                done = subprocess.run(
                    command,
                    check=False,
                    cwd=given.module_dir,
                    env={"PATH": os.defpath, "HOME": folder, "LANG": "C.UTF-8"},
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=errors,
                )
            if done.returncode < 0:
                raise EngineLost(f"go-crap was ended by signal {-done.returncode}")
            if done.returncode:
                raise EngineFailed(f"go-crap: {_last_line(said)}")
            return _read(written)


def _check_links(beside: Report) -> None:
    """Raise EngineFailed if a link leads go-crap out of the checkout, or around in circles."""
    link = next((warning for warning in beside.warnings if warning.kind == "link"), None)
    if link is not None:
        raise EngineFailed(f"go-crap would follow {link.path}, {link.reason.removesuffix(', not followed')}: use another engine")


def _empty_profile(module_dir: Path) -> Path:
    """Return the path of an empty file in the place of the profile. A worker has put one there."""
    path = module_dir / STAGED
    with suppress(OSError), open_regular(path) as file:
        if not file.read(1):
            return path
    path.unlink(missing_ok=True)
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600))
    return path


def _read(written: Path) -> _Document:
    try:
        with open_regular(written) as file:
            text = file.read(LARGEST + 1)
        if len(text) > LARGEST:
            raise EngineFailed(f"the report of go-crap is larger than {LARGEST} bytes")
        found = _decode(text)
    except FileNotFoundError as error:
        raise EngineFailed("go-crap wrote no report") from error
    except msgspec.DecodeError as error:
        raise EngineFailed(f"the report of go-crap cannot be read: {error}") from error
    if not found.version.startswith(_FORMAT):
        raise EngineFailed(f"the report of go-crap has the format {found.version}, which is not known")
    return found


def _entry(entry: _Entry, beside: FunctionEntry | None) -> FunctionEntry:
    return FunctionEntry(
        file=entry.file,
        package=entry.package,
        function=entry.function,
        name=entry.function.removeprefix(f"{entry.receiver}.") if entry.receiver else entry.function,
        receiver=entry.receiver,
        line=entry.line,
        end_line=entry.line if beside is None else beside.end_line,
        cyclomatic=entry.cyclomatic,
        coverage=entry.coverage,
        stmt_coverage=None if beside is None else beside.stmt_coverage,
        crap=entry.crap,
        state=State.UNKNOWN if beside is None else beside.state,
        reason="go-crap alone reports it" if beside is None else beside.reason,
        identity=msgspec.UNSET if beside is None else beside.identity,
    )


def _last_line(said: Path) -> str:
    with said.open("rb") as file:
        file.seek(max(0, said.stat().st_size - 4096))
        lines = [line.strip() for line in file.read().decode(errors="replace").splitlines() if line.strip()]
    return (lines[-1] if lines else "it failed without a reason").removeprefix("Error: ")


def installed_gocrap() -> GocrapProgram | None:
    """Return the go-crap on PATH; None if it is missing, or does not report its version."""
    import subprocess  # noqa: PLC0415 - as above

    found = shutil.which(NAME)
    if found is None:
        return None
    try:
        done = subprocess.run(
            [found, "version", "-s"], check=False, capture_output=True, stdin=subprocess.DEVNULL, text=True, timeout=_SHORT
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    match = _VERSION.fullmatch(done.stdout.strip())
    return None if match is None or done.returncode else GocrapProgram(Path(found).absolute(), match[1])
