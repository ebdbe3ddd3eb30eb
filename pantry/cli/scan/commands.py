"""`pantry scan`: a barcode scanner in a terminal."""

from __future__ import annotations

import asyncio
import os
import sys
import threading
from collections.abc import AsyncIterator
from http import HTTPStatus
from typing import Any

import attrs
import click

from pantry.cli.movements.quantities import QUANTITY, product_of, shown
from pantry.cli.scan.scanner import Direction, Quantity, ScannedCode, Undo, understood
from pantry.cli.session import Session, client_command
from pantry.client.resources import Movement, Product
from terminalkit import ExitCode, examples
from terminalkit.client import ClientError, Conflicting, TimedOut, Unavailable
from terminalkit.display import count

REQUEST_TIMEOUT = 5.0
"""Seconds that a booking may take before it is tried again, while a person waits."""

_AT_A_TIME = 65_536


@click.command(
    epilog=examples(
        "pantry scan                       each code takes one out",
        "pantry scan --in --quantity 6     each code brings six",
        "printf 'in\\n4006381333931\\nu\\n' | pantry scan --json",
    )
)
@click.option("--in/--out", "coming", default=False, help="Where what is scanned goes, to begin with.  [default: --out]")
@click.option("--quantity", type=QUANTITY, default="1", show_default=True, help="How much each code moves, to begin with.")
@client_command(timeout=REQUEST_TIMEOUT)
async def scan(session: Session, *, coming: bool, quantity: float) -> int:
    """Read codes from standard input, one on a line, and book each at once.

    Other lines: `in`, `out` and a number like `3` or `1.5` change the following bookings. `u` undoes the last booking, and a
    second `u` the one before it. `?` before a code only looks it up. An impossible booking is reported, and the next line is
    read. The exit code is 7 then. With --json each line has a document.
    """
    scanner = Scanner(session, Direction.IN if coming else Direction.OUT, quantity)
    if sys.stdin.isatty():
        session.output.note(f"{scanner.mode}; say in, out, a quantity, u to undo, ? and a code to look; end with ^D")
    lines = failed = 0
    async for line in _lines():
        if line.strip():
            lines += 1
            failed += not await scanner.take(line)
    if failed:
        session.output.note(f"{count(failed, 'line')} of {lines} failed")
    return ExitCode.PARTIAL if failed else ExitCode.OK


@attrs.define
class Scanner:
    """Bookings line by line: direction and quantity of the next ones, and bookings that can be undone, the last one last."""

    session: Session
    direction: Direction
    quantity: float
    booked: list[Movement] = attrs.field(factory=list)

    @property
    def mode(self) -> str:
        """The effect of the next code, in words."""
        return f"{self.direction.value} {shown(self.quantity)}"

    async def take(self, line: str) -> bool:
        """Do the action of a line and print its result. Return whether it succeeded."""
        try:
            await self._do(line)
        except (ValueError, ClientError) as error:
            self._say_failed(line.strip(), str(error) + _doubt(error))
            return False
        return True

    async def _do(self, line: str) -> None:
        match understood(line):
            case ScannedCode(digits=digits, lookup=True):
                named = await self.session.client.barcode(digits)
                self._say("look", await self.session.client.product(named.product_ean13))
            case ScannedCode(digits=digits):
                named = await self.session.client.barcode(digits)
                quantity = product_of(self.quantity, named.factor)
                self.booked.append(await self.session.client.move(named.product_ean13, self.direction.value, quantity))
                await self._say_booked(self.booked[-1], self.direction.value)
            case Undo():
                if not self.booked:
                    raise ValueError("there is nothing to undo")
                await self._say_booked(await self._undo(), "undo")
            case Quantity(value=value):
                self.quantity = value
                self._say_mode()
            case Direction() as direction:
                self.direction = direction
                self._say_mode()
            case None:
                pass

    async def _undo(self) -> Movement:
        """Undo the last booking. One that was undone elsewhere is not tried again."""
        try:
            undone = await self.session.client.undo(self.booked[-1].id)
        except Conflicting as error:
            if error.status == HTTPStatus.CONFLICT:
                del self.booked[-1]
            raise
        del self.booked[-1]
        return undone

    async def _say_booked(self, movement: Movement, what: str) -> None:
        """Print the result of a booking, also if the product's name cannot be read now."""
        try:
            product = await self.session.client.product(movement.product_ean13)
        except ClientError as error:
            self.session.output.detail(f"the product is not known: {error}")
            product = None
        self._say(what, product, movement)

    def _say(self, what: str, product: Product | None, movement: Movement | None = None) -> None:
        known = product.document if product is not None else {}
        stock = movement.stock_after if movement is not None else known["current_stock"]
        low = product is not None and stock <= product.min_stock
        code = movement.product_ean13 if movement is not None else known["ean13"]
        if self.session.output.json:
            moved: dict[str, Any] = {} if movement is None else {"movement": movement.document}
            said = {"did": what, "ean13": code, "name": known.get("name"), "unit": known.get("unit"), "stock": stock, "low": low}
            self.session.output.record(said | moved)
            return
        quantity = "" if movement is None else f" {shown(movement.quantity)}"
        amount = f"{shown(stock)} {known.get('unit', '')}".strip()
        self.session.output.row([f"{what}{quantity}", str(known.get("name", code)), amount, *(["LOW"] if low else [])])

    def _say_mode(self) -> None:
        if self.session.output.json:
            self.session.output.record({"did": "set", "direction": self.direction.value, "quantity": self.quantity})
        else:
            self.session.output.note(f"now: {self.mode}")

    def _say_failed(self, line: str, why: str) -> None:
        if self.session.output.json:
            self.session.output.record({"did": None, "line": line, "error": why})
        else:
            self.session.output.error(line, why, code="")


def _doubt(error: Exception) -> str:
    """The message if it is not known whether a movement was booked."""
    sent = isinstance(error, TimedOut) or (isinstance(error, Unavailable) and error.sent)
    return "; it may have been booked: look with ? before you repeat it" if sent else ""


async def _lines() -> AsyncIterator[str]:
    """The lines of standard input as they come: of a terminal, a pipe or a file.

    They are read in a thread that is never joined, and not through `sys.stdin`, whose lock it would hold at the end.
    """
    loop, queue = asyncio.get_running_loop(), asyncio.Queue[bytes]()
    number = sys.stdin.fileno()

    def read() -> None:
        chunk = b"-"
        while chunk:
            try:
                chunk = os.read(number, _AT_A_TIME)
            except OSError:  # the terminal is gone
                chunk = b""
            try:
                loop.call_soon_threadsafe(queue.put_nowait, chunk)
            except RuntimeError:  # the command has ended
                return

    threading.Thread(target=read, daemon=True).start()
    rest = b""
    while chunk := await queue.get():
        *lines, rest = (rest + chunk).replace(b"\r", b"\n").split(b"\n")
        for line in lines:
            yield line.decode(errors="replace")
    yield rest.decode(errors="replace")
