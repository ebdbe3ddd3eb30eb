"""The services of the handlers of the API, and their common steps."""

from __future__ import annotations

import attrs

from httpkit.routes import Call
from httpkit.server.guard import Guard
from pantry.commands.imports import Imports
from pantry.commands.pantry import Pantry
from pantry.erasures import Erasures
from pantry.readmodel.queries import PantryQueries
from servicekit.access.devices import Devices
from servicekit.readside import ReadSide

_NO_VERSION = -1


@attrs.frozen(kw_only=True)
class Services:
    """The parts of a running pantry. `guard` are the checks of requests, `public_url` the address of the page, if it is set."""

    pantry: Pantry
    imports: Imports
    queries: PantryQueries
    side: ReadSide
    erasures: Erasures
    devices: Devices
    guard: Guard
    public_url: str | None = None


def version_wanted(call: Call[Services]) -> int | None:
    """The version that If-Match names (RFC 9110, section 13.1.1): None if any will do.

    Entity tags are versions. The first of several tags counts. A tag other than a version matches none.
    """
    tags = call.http.if_match
    if not tags or any(tag.value == "*" for tag in tags):
        return None
    tag = tags[0]
    return int(tag.value) if tag.value.isascii() and tag.value.isdigit() and not tag.is_weak else _NO_VERSION
