"""The systems that this user runs on this machine. Each announces its addresses in a file, and commands find them there.

This is the one rule for all commands. The value of a setting comes from its option, else its variable, else the settings file,
else the running system, else the default. A running system is used only if it has every address that another source gives; so
the addresses of two systems are never mixed. If several systems fit, the command names them and does nothing.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import tempfile
from collections.abc import Collection, Iterator, Mapping, Sequence
from http import HTTPStatus
from pathlib import Path

import attrs
from platformdirs import user_state_path

from httpkit.errors import HttpkitError

ADDRESSES = ("url", "nats_url", "database_url")
"""The settings that distinguish one system from another."""
_SQLITE = "sqlite:"


class SeveralRunning(HttpkitError):
    """Several running systems fit a command. The text names them."""

    status = HTTPStatus.CONFLICT


@attrs.frozen(kw_only=True)
class RunningSystem:
    """A running system: the command that runs it, its process, the process that started that, and the variables for commands."""

    name: str
    pid: int
    parent: int
    variables: Mapping[str, str]

    def __str__(self) -> str:
        return f"{self.name} (process {self.pid})"


@contextlib.contextmanager
def announced_system(name: str, variables: Mapping[str, str]) -> Iterator[None]:
    """Announce a system to the commands of this user while the block runs. `name` is the command that runs it.

    The variables may have passwords in them, so only their owner can read the file. If it cannot be written, that is logged, and
    the system runs all the same.
    """
    with contextlib.ExitStack() as stack:
        try:
            system = RunningSystem(name=name, pid=os.getpid(), parent=os.getppid(), variables=_placed(variables))
            stack.enter_context(_locked_file(system))
        except OSError as error:
            import structlog  # noqa: PLC0415 - slow, and commands that only read the files do without it

            structlog.get_logger(__name__).info("commands do not find this process", error=str(error))
        yield


def running_system(variables: Collection[str], addresses: Mapping[str, str]) -> RunningSystem | None:
    """Return the running system that gives a value to one of the `variables`; None if there is none.

    `addresses` are the addresses that another source gives, by variable: a system with another value does not fit. Raises
    SeveralRunning if the values of several systems differ.
    """
    systems = [system for system in _running() if _fits(system, variables, addresses)]
    if len({tuple(system.variables.get(name) for name in sorted(variables)) for system in systems}) > 1:
        named = " and ".join(map(str, systems))
        raise SeveralRunning(f"several systems run on this machine: {named}; choose one by an option, or by {_choice(variables)}")
    return systems[0] if systems else None


def _choice(variables: Collection[str]) -> str:
    return " and ".join(sorted(name for name in variables if name.endswith("_URL")) or sorted(variables))


def _fits(system: RunningSystem, variables: Collection[str], addresses: Mapping[str, str]) -> bool:
    placed = _placed(addresses)
    return not system.variables.keys().isdisjoint(variables) and all(
        system.variables.get(name, value) == value for name, value in placed.items()
    )


def _placed(variables: Mapping[str, str]) -> Mapping[str, str]:
    """The variables with the full paths of SQLite files, because commands run in other directories."""
    return {
        name: f"{_SQLITE}{Path(value.removeprefix(_SQLITE)).absolute()}" if value.startswith(_SQLITE) else value
        for name, value in variables.items()
    }


def _running() -> Sequence[RunningSystem]:
    """The running systems. A server that another system has started announces itself too, and is not one of them."""
    systems = [system for file in sorted(_directory().glob("*.json")) if (system := _read(file)) is not None]
    pids = {system.pid for system in systems}
    return [system for system in systems if system.parent not in pids]


def _directory() -> Path:
    return user_state_path("terminalkit") / "running"


@contextlib.contextmanager
def _locked_file(system: RunningSystem) -> Iterator[None]:
    """Write the file of a system. Its lock ends with the process at the latest, so that a file without a lock is a remainder."""
    directory = _directory()
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile("w", dir=directory, prefix=f"{system.pid}-", delete=False) as file:
        place = Path(file.name)
        try:
            fcntl.flock(file, fcntl.LOCK_EX)
            file.write(json.dumps(attrs.asdict(system)))
            file.flush()
            place = place.rename(f"{place}.json")  # only now it is found, and it is locked
            yield
        finally:
            place.unlink(missing_ok=True)


def _read(file: Path) -> RunningSystem | None:
    """Return the system of a file; None if it has ended or if the file is damaged. The file of an ended system is removed."""
    try:
        with file.open(encoding="utf-8") as opened:
            with contextlib.suppress(BlockingIOError):
                fcntl.flock(opened, fcntl.LOCK_SH | fcntl.LOCK_NB)
                file.unlink(missing_ok=True)
                return None
            content = json.loads(opened.read())
        return RunningSystem(
            name=str(content["name"]),
            pid=int(content["pid"]),
            parent=int(content["parent"]),
            variables={str(name): str(value) for name, value in content["variables"].items()},
        )
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return None


def checkout_root() -> Path | None:
    """Return the root of the checkout that this package is in; None if it is installed."""
    root = Path(__file__).resolve().parents[2]
    return root if (root / "scripts" / "up").is_file() else None
