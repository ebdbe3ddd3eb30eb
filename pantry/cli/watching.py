"""`pantry watch`: the events of the pantry, live."""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import aclosing
from datetime import UTC, datetime
from typing import Any

import click
import msgspec

from pantry.cli.movements.quantities import shown
from pantry.cli.session import Session, client_command
from terminalkit import Choice, ExitCode, examples
from terminalkit.client import RESET, ClientError, Opened, ReceivedFrame, StreamLost
from terminalkit.display import moment

EVENTS = ("stock", "low_stock", "product", "category", "code")
PATIENCE = 60.0
"""Seconds that a server may be away before following it is given up; one that was never there is not waited for."""


@click.command(
    epilog=examples(
        "pantry watch",
        "pantry watch --event low_stock --count 1 && echo something is low, or no longer",
        "pantry watch --json | jq -r 'select(.event == \"stock\") | [.data.name, .data.current_stock] | @tsv'",
    )
)
@click.option("--event", "names", type=Choice(EVENTS), multiple=True, help="Only these events.  [default: all]")
@click.option("--count", type=click.IntRange(min=1), help="End after this number of events.")
@client_command()
async def watch(session: Session, *, names: tuple[str, ...], count: int | None) -> int:
    """Follow the events of the pantry.

    The events are movements, products that become low or are no longer low, and products, categories and codes as they are
    edited. Each event is a line, with --json a document with its name, id and data. A connection that is cut is resumed at its
    end.
    """
    shown_so_far, last_contact = 0, -PATIENCE
    async with aclosing(session.client.feed(events=names)) as feed:
        async for signal in feed:
            match signal:
                case StreamLost(error=error):
                    if time.monotonic() - last_contact > PATIENCE:
                        raise error
                    session.output.note(f"{error}; trying again")
                    continue
                case Opened():
                    session.output.note("following")
                case ReceivedFrame(event=event) if event == RESET:
                    session.output.note("the server cannot resume: events may be missing")
                case ReceivedFrame():
                    _show(session, signal)
                    shown_so_far += 1
            last_contact = time.monotonic()
            if shown_so_far == count:
                break
    return ExitCode.OK


def _show(session: Session, frame: ReceivedFrame) -> None:
    try:
        data = msgspec.json.decode(frame.data)
    except msgspec.DecodeError as error:
        raise ClientError(f"event {frame.id} is not JSON: {error}") from error
    if session.output.json:
        session.output.record({"event": frame.event, "id": frame.id, "data": data})
    elif isinstance(data, dict):
        session.output.row([moment(datetime.now(UTC)), frame.event, *_cells(frame.event, data)])


def _cells(event: str, data: Mapping[str, Any]) -> list[str]:
    name = str(data.get("name", ""))
    if event == "category":
        return [name]
    if event == "code":
        return [str(data.get("code", "")), str(data.get("product_ean13") or "names no product"), shown(data.get("factor", 1))]
    code, stock = str(data.get("ean13", "")), f"{shown(data.get('current_stock', 0))} {data.get('unit', '')}"
    match event:
        case "stock":
            movement = data.get("movement", {})
            low = ["LOW"] if data.get("is_low_stock") else []
            return [code, name, f"{movement.get('type')} {shown(movement.get('quantity', 0))}", stock, *low]
        case "low_stock":
            return [code, name, stock, "LOW" if data.get("is_low_stock") else "enough again"]
        case _:
            return [code, name, stock]
