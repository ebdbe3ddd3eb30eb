"""The size of the core, the rooms that a request crosses, and the doors that the services use.

`PYTHONPATH=. python scripts/house.py [CHECKOUT]` prints lines and modules of each package, the imports of the core by the
services through its faces and past them, the places at which the core names a service, and the files and functions of the
core that a deposit of the bank and a movement of the pantry cross, with the projection of their commit. With CHECKOUT it counts
that one, without requests.
"""

from __future__ import annotations

import ast
import asyncio
import logging
import re
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from types import CodeType, FrameType
from typing import Any

import aiohttp
import attrs
import structlog

ROOT = Path(__file__).parents[1]
CORE = ("eventlog", "projections", "httpkit", "servicekit", "terminalkit")
SERVICES = ("gctd", "pantry", "graphql_fn")
FACES = (
    *("servicekit", "servicekit.access"),
    *("projections", "projections.stores"),
    *("terminalkit", "terminalkit.client", "terminalkit.display"),
    "httpkit",
    *("eventlog", "eventlog.jetstream", "eventlog.admin", "eventlog.embedded", "eventlog.testing"),
)
"""The packages, and parts of them, that give names to services: `__all__`. Services import nothing else of the core."""
SMALL = 60
"""Lines of a module that may be a part of another one."""
_EAN = "4006381333931"
_PROJECTED = 0.1
"""Seconds in which a commit is projected, also one whose answer does not wait for that."""
_NAMES = re.compile(r"\b(gctd|pantry|graphql.fn|crap)\b", re.IGNORECASE)


@attrs.frozen
class Package:
    """The size of a package: modules, lines, modules of at most SMALL lines."""

    modules: int
    lines: int
    small: int


def package(root: Path, name: str) -> Package:
    """The size of a package in a checkout."""
    lengths = [len(file.read_text(encoding="utf-8").splitlines()) for file in (root / name).rglob("*.py")]
    return Package(len(lengths), sum(lengths), sum(length <= SMALL for length in lengths))


def imports(root: Path) -> tuple[int, int, int]:
    """How often the services import the core through a face and past it, and how many modules they reach past it."""
    through, past = 0, list[str]()
    for service in SERVICES:
        for file in (root / service).rglob("*.py"):
            for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
                if isinstance(node, ast.ImportFrom) and node.module and node.module.partition(".")[0] in CORE:
                    if node.module in FACES:
                        through += 1
                    else:
                        past.append(node.module)
    return through, len(past), len({*past})


def names(root: Path) -> Sequence[str]:
    """The places at which the core names a service: file and line."""
    files = [(file, file.read_text(encoding="utf-8")) for part in CORE for file in sorted((root / part).rglob("*.py"))]
    return [
        f"{file.relative_to(root)}:{number}"
        for file, text in files
        for number, line in enumerate(text.splitlines(), 1)
        if _NAMES.search(line)
    ]


class Crossing:
    """Counts the functions of the core that are entered, in all threads, while a block runs."""

    def __init__(self) -> None:
        self.calls: dict[CodeType, int] = {}
        self._counts = False
        self._prefixes = tuple(f"{ROOT / part}/" for part in CORE)
        threading.setprofile(self._entered)
        sys.setprofile(self._entered)

    @contextmanager
    def counting(self) -> Iterator[None]:
        """Count from zero."""
        self.calls.clear()
        self._counts = True
        yield
        self._counts = False

    def report(self, request: str) -> str:
        """One line: files, functions, calls, and files by package."""
        entered = {code: count for code, count in self.calls.items() if code.co_filename.startswith(self._prefixes)}
        files = {code.co_filename for code in entered}
        by_package = ", ".join(f"{part} {sum(file.startswith(f'{ROOT / part}/') for file in files)}" for part in CORE)
        return f"{request}: {len(files)} files, {len(entered)} functions, {sum(entered.values())} calls ({by_package})"

    def _entered(self, frame: FrameType, event: str, _: Any) -> None:
        if self._counts and event == "call":
            self.calls[frame.f_code] = self.calls.get(frame.f_code, 0) + 1


async def requests(crossing: Crossing, directory: Path) -> Sequence[str]:
    """Make one deposit and one movement after others that have warmed all up, and report on each."""
    from eventlog.embedded.nats import EmbeddedServer  # noqa: PLC0415 - not for the sizes of another checkout
    from examples.bank.service import BANK  # noqa: PLC0415 - as above
    from pantry.serve import SERVICE as PANTRY  # noqa: PLC0415 - as above
    from pantry.settings import Settings  # noqa: PLC0415 - as above
    from servicekit import ServiceSettings  # noqa: PLC0415 - as above

    async with EmbeddedServer(directory / "nats") as server:
        of_bank = ServiceSettings(port=0, nats_url=server.url, database_url=f"sqlite:{directory / 'bank.db'}")
        async with BANK.listening(of_bank) as address, aiohttp.ClientSession(address.url) as http:
            deposit = await _crossed(crossing, http, "/api/accounts/anna/deposits", {"cents": 5})
        of_pantry = Settings(host="127.0.0.1", port=0, nats_url=server.url, database_url=f"sqlite:{directory / 'pantry.db'}")
        async with PANTRY.listening(of_pantry) as address, aiohttp.ClientSession(address.url) as http:
            async with http.post(f"/api/v1/products/{_EAN}", json={"name": "Flour", "unit": "kg"}) as response:
                response.raise_for_status()
            body = {"product_ean13": _EAN, "type": "in", "quantity": 1}
            movement = await _crossed(crossing, http, "/api/v1/movements", body)
    return [f"deposit of the bank, {deposit}", f"movement of the pantry, {movement}"]


async def _crossed(crossing: Crossing, http: aiohttp.ClientSession, path: str, body: Mapping[str, Any]) -> str:
    for _ in range(4):
        with crossing.counting():
            async with http.post(path, json=body) as response:
                response.raise_for_status()
                await response.read()
            await asyncio.sleep(_PROJECTED)
    return crossing.report("POST")


def main(root: Path) -> None:
    """Print all figures of a checkout, and the requests of this one."""
    print(f"{'package':14}{'modules':>8}{'lines':>8}{f'≤ {SMALL} lines':>12}")
    sizes = {name: package(root, name) for name in CORE}
    for name, size in sizes.items():
        print(f"{name:14}{size.modules:>8}{size.lines:>8}{size.small:>12}")
    modules, lines, small = (sum(getattr(size, figure) for size in sizes.values()) for figure in ("modules", "lines", "small"))
    print(f"{'all':14}{modules:>8}{lines:>8}{small:>12}")
    through, past, reached = imports(root)
    print(f"imports of the core by the services: {through} through its faces, {past} past them, into {reached} modules")
    named = names(root)
    print(f"names of services in the core: {len(named)}{': ' if named else ''}{', '.join(named)}")
    if root == ROOT:
        structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
        crossing = Crossing()
        with TemporaryDirectory() as directory:
            print(*asyncio.run(requests(crossing, Path(directory))), sep="\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve() if len(sys.argv) > 1 else ROOT)
