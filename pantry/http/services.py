"""The services of the handlers of the API, and their common steps."""

from __future__ import annotations

import re

import attrs

from httpkit import Call, PreconditionFailed
from pantry.commands.imports import Imports
from pantry.commands.pantry import Pantry
from pantry.domain.errors import NotFound
from pantry.erasures import Erasures
from pantry.readmodel.queries import PantryQueries
from servicekit import Running
from servicekit.access import Devices

_VERSION = re.compile(r"[0-9]{1,18}")


@attrs.frozen(kw_only=True)
class Services(Running):
    """The parts of a running pantry. `public_url` is the address of the page, if it is set."""

    pantry: Pantry
    imports: Imports
    queries: PantryQueries
    erasures: Erasures
    devices: Devices
    public_url: str | None = None

    async def check_filter(self, ean13: str | None) -> None:
        """Check that the product exists that a list is to be about, if there is one. Raises NotFound."""
        if ean13 is not None and await self.queries.product(ean13) is None:
            raise NotFound(f"there is no product {ean13}")


def version_wanted(call: Call[Services]) -> int | None:
    """Return the version that If-Match names (RFC 9110, section 13.1.1); None if any will do.

    Entity tags are versions. Of several ones the highest counts: versions only rise, so no other that the caller has seen can be
    the present one. Raises PreconditionFailed if no tag is a version.
    """
    tags = call.if_match
    if tags is None or any(tag.value == "*" for tag in tags):
        return None
    versions = [int(tag.value) for tag in tags if _VERSION.fullmatch(tag.value) and not tag.is_weak]
    if not versions:
        raise PreconditionFailed("If-Match names no version: it is a number in quotes, as the header ETag has it")
    return max(versions)
