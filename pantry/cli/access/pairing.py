"""`pantry pair`: a QR code on the terminal that signs a phone in."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest

import click

from pantry.cli.session import Session, client_command
from terminalkit import Choice, ExitCode, examples

_MARGIN = 4
"""Light modules around a QR code (ISO/IEC 18004, section 6.3.8)."""
_HALVES = {("1", "1"): " ", ("1", "0"): "▄", ("0", "1"): "▀", ("0", "0"): "█"}
"""The character of two modules, one above the other: light modules have the colour of the text."""
_WHITE_ON_BLACK, _USUAL = "\x1b[97;40m", "\x1b[0m"


@click.command(
    "pair",
    epilog=examples(
        "pantry pair", "pantry pair 'phone of Anna' --scope read", "pantry pair tablet --address https://pantry.home:8080"
    ),
)
@click.argument("name", default="phone")
@click.option(
    "--scope",
    type=Choice(("read", "write", "admin")),
    help="Rights of the phone, at most the rights of the token.  [default: write, or read with a token that only reads]",
)
@click.option("--address", help="Address of the page as the phone reaches it.  [default: public_url of the server, or --url]")
@client_command()
async def pair(session: Session, *, name: str, scope: str | None, address: str | None) -> int:
    """Show a QR code that opens the page of the kitchen on a phone, and signs the phone in under NAME.

    The code is valid once and for five minutes. The phone has a session of the token in PANTRY_AUTH_TOKEN, and loses it with the
    token. If the server asks for no token, the code is the address of the page. On a pipe only the address is written.
    """
    found = await session.client.pair(name, scope=scope, address=address)
    output = session.output
    if output.json:
        output.document(found.document)
    else:
        if output.stdout.isatty():
            output.raw(_drawn(found.qr))
        output.line(found.link)
    if found.expires_at is not None:
        output.note(f"it signs one phone in, until {found.expires_at.astimezone():%H:%M:%S}")
    if found.warning:
        output.note(f"warning: {found.warning}, or name the address with --address")
    return ExitCode.OK


def _drawn(rows: Sequence[str]) -> str:
    """The lines of a QR code, two rows of modules in each, dark on light with any colours of the terminal."""
    width = len(rows[0]) + 2 * _MARGIN
    margin = ["0" * width] * _MARGIN
    whole = [*margin, *(f"{row:0^{width}}" for row in rows), *margin]
    pairs = zip_longest(whole[::2], whole[1::2], fillvalue="1" * width)
    lines = ["".join(_HALVES[both] for both in zip(*pair, strict=True)) for pair in pairs]
    return "".join(f"{_WHITE_ON_BLACK}{line}{_USUAL}\n" for line in lines)
