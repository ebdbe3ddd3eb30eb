"""Shell completion: the scripts, and values that the server knows."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from terminalkit import completes, completion_command

if TYPE_CHECKING:
    from gctd.client.api import Client

_TASKS = 50

completion = completion_command("gctd", "commands, options, repositories, tasks and workers")


def _client() -> Client:
    from gctd.client.api import Client  # noqa: PLC0415 - slow, and seldom wanted
    from gctd.settings import SETTINGS  # noqa: PLC0415 - as above

    settings = SETTINGS.load(running=("url",)).values
    return Client(settings.url, token=settings.auth_token)


async def _repo_urls(client: Client) -> Iterable[str]:
    return [repo.url for repo in await client.repos()]


async def _task_ids(client: Client) -> Iterable[str]:
    return [task.id for task in await client.tasks(limit=_TASKS)]


async def _worker_ids(client: Client) -> Iterable[str]:
    return [worker.id for worker in await client.workers()]


repo_urls = completes(_client, _repo_urls)
task_ids = completes(_client, _task_ids)
worker_ids = completes(_client, _worker_ids)
