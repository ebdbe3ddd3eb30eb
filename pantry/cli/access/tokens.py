"""`pantry token create | list | revoke`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pantry.cli.options import FLAGS
from servicekit.cli.tokens import token_commands

if TYPE_CHECKING:
    from servicekit.service import Service


def _service() -> Service:
    from pantry.serve import SERVICE  # noqa: PLC0415 - help and completion do without it

    return SERVICE


token = token_commands(FLAGS, "pantry", _service)
