"""Commands that ask a server: their common options and their session."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from pantry.cli.options import FLAGS
from terminalkit import lazily
from terminalkit.client import ClientSession, NotFound, command_with_client

if TYPE_CHECKING:
    from pantry.client.api import Client


class Session(ClientSession):
    """The session of a command of the pantry."""

    client: Client

    async def category_id(self, name: str | None) -> str | None:
        """The id of a category by its name or id. Raises NotFound."""
        if not name:
            return name
        for category in await self.client.categories():
            if name in {category.id, category.name}:
                return category.id
        self.invocation.not_found = "pantry category list"
        raise NotFound(f"there is no category {name}")


client_command = partial(command_with_client, FLAGS, lazily("pantry.client.api:Client"), Session)
