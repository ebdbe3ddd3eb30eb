"""`pantry person`: the persons who book."""

from __future__ import annotations

import click

from pantry.cli.session import Session, client_command
from terminalkit import ExitCode, examples


@click.group()
def person() -> None:
    """Erase what is known of a person."""


@person.command(
    "erase",
    epilog=examples(
        "pantry person erase anna", "pantry person erase 'Anna Example'", "pantry person erase anna && pantry movement list"
    ),
)
@click.argument("name")
@client_command()
async def erase(session: Session, *, name: str) -> int:
    """Make the name and the notes of all bookings of NAME unreadable. The bookings stay.

    It cannot be undone. It may be repeated, also for a NAME without bookings.
    """
    await session.client.erase_person(name)
    session.output.note(f"{name} is erased")
    return ExitCode.OK
