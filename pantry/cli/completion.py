"""`pantry completion`: the scripts for shells, and values that the server knows."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from terminalkit import completes, completion_command

if TYPE_CHECKING:
    from pantry.client.api import Client

_MOST = 1000

completion = completion_command("pantry", "commands, products and categories")


def _client() -> Client:
    from pantry.client.api import Client  # noqa: PLC0415 - slow, and seldom wanted
    from pantry.settings import SETTINGS  # noqa: PLC0415 - as above

    settings = SETTINGS.load(running=("url",)).values
    return Client(settings.url, token=settings.auth_token)


async def _product_codes(client: Client) -> Iterable[str]:
    return [product.ean13 for product in await client.products(limit=_MOST)]


async def _category_names(client: Client) -> Iterable[str]:
    return [category.name for category in await client.categories()]


product_codes = completes(_client, _product_codes)
category_names = completes(_client, _category_names)
