"""The API of a forge: a commit status and one comment, each set so that doing it twice is doing it once.

Only the configured base of the API is asked: paths below it, no redirect, no proxy of the environment. So neither an answer of
the forge nor a payload can lead a request to another host.
"""

from __future__ import annotations

from datetime import timedelta
from http import HTTPStatus
from typing import Any
from urllib.parse import quote

import aiohttp
import attrs
import msgspec
from yarl import URL

from gctd.control.forges.configured import Forge
from gctd.control.forges.own_comment import marker, received, written
from gctd.domain.delivery.state import Delivery

SECONDS = 20.0
LARGEST = 4 * 1024 * 1024
"""Bytes of an answer."""
PAGE, PAGES = 100, 20
"""Comments of a page, and pages that are searched for the tracker's own comment."""
_LONGEST_PAUSE = 3600
_GITLAB_STATES = {"success": "success", "failure": "failed", "error": "failed"}


class ForgeFailed(Exception):
    """The forge did not do it. `permanent`: it would not another time. `pause`: it asks for this time without requests."""

    def __init__(self, reason: str, *, permanent: bool = False, pause: timedelta = timedelta()) -> None:
        super().__init__(reason)
        self.permanent = permanent
        self.pause = pause


def status_name(delivery: Delivery) -> str:
    """Return the name of the commit status.

    A commit can have a pull request and a push. Their bases differ, and so may the verdicts.
    """
    return "gctd/push" if delivery.number is None else "gctd"


@attrs.frozen
class ForgeApi:
    """One forge. All methods raise ForgeFailed."""

    forge: Forge

    async def put_status(self, delivery: Delivery, target: str) -> None:
        """Set the status of the commit, unless it is set already."""
        github = self.forge.kind == "github"
        repo = self._repository(delivery)
        state = delivery.state if github else _GITLAB_STATES[delivery.state]
        member, name = "context" if github else "name", status_name(delivery)
        commit = f"commits/{delivery.commit_sha}/statuses"
        known = f"{commit}?per_page={PAGE}" if github else f"repository/{commit}?name={quote(name, safe='')}&per_page={PAGE}"
        async with self._session() as session:
            newest = next((one for one in await self._list(session, f"{repo}/{known}") if one.get(member) == name), {})
            if (newest.get("state" if github else "status"), newest.get("description")) == (state, delivery.description):
                return
            body = {"state": state, member: name, "description": delivery.description}
            if target:
                body["target_url"] = target
            await self._ask(session, "POST", f"{repo}/statuses/{delivery.commit_sha}", body)

    async def put_comment(self, delivery: Delivery, text: str) -> None:
        """Write the comment of the tracker on the pull request, or replace its text unless a later delivery wrote it."""
        body = f"{marker(delivery, self.forge.secrets)}\n\n{text}"
        github = self.forge.kind == "github"
        repo = self._repository(delivery)
        thread = f"{repo}/issues/{delivery.number}/comments" if github else f"{repo}/merge_requests/{delivery.number}/notes"
        async with self._session() as session:
            for page in range(1, PAGES + 1):
                found = await self._list(session, f"{thread}?per_page={PAGE}&page={page}")
                dated = [(one, written(str(one.get("body", "")), delivery, self.forge.secrets)) for one in found]
                ours = [(one, at) for one, at in dated if at is not None]
                if ours:
                    own, at = ours[0]
                    if own["body"] != body and at <= received(delivery):
                        place = f"{repo}/issues/comments/{int(own['id'])}" if github else f"{thread}/{int(own['id'])}"
                        await self._ask(session, "PATCH" if github else "PUT", place, {"body": body})
                    return
                if len(found) < PAGE:
                    break
            await self._ask(session, "POST", thread, {"body": body})

    def _repository(self, delivery: Delivery) -> str:
        if self.forge.kind == "github":
            return f"/repos/{quote(delivery.path, safe='/')}"
        return f"/projects/{quote(delivery.path, safe='')}"

    def _session(self) -> aiohttp.ClientSession:
        headers = {"Accept": "application/json", "Accept-Encoding": "identity", "User-Agent": "gctd"}
        if self.forge.kind == "github":
            headers |= {"Authorization": f"Bearer {self.forge.token}", "Accept": "application/vnd.github+json"}
        else:
            headers["PRIVATE-TOKEN"] = self.forge.token
        return aiohttp.ClientSession(
            headers=headers,
            cookie_jar=aiohttp.DummyCookieJar(),
            timeout=aiohttp.ClientTimeout(total=SECONDS),
            auto_decompress=False,
            trust_env=False,
        )

    async def _list(self, session: aiohttp.ClientSession, path: str) -> list[dict[str, Any]]:
        found = await self._ask(session, "GET", path, None)
        if not isinstance(found, list) or not all(isinstance(one, dict) for one in found):
            raise ForgeFailed(f"GET {path.partition('?')[0]}: the answer is not a list")
        return found

    async def _ask(self, session: aiohttp.ClientSession, method: str, path: str, body: object) -> Any:
        what = f"{method} {path.partition('?')[0]}"
        url = URL(self.forge.api + path, encoded=True)
        try:
            async with session.request(method, url, json=body, allow_redirects=False) as response:
                text = await _read(response)
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise ForgeFailed(f"{what}: {str(error) or 'no answer in time'}") from None
        if response.status >= HTTPStatus.MULTIPLE_CHOICES:
            raise _refusal(what, response)
        try:
            return msgspec.json.decode(text)
        except msgspec.DecodeError:
            raise ForgeFailed(f"{what}: the answer is not JSON") from None


async def _read(response: aiohttp.ClientResponse) -> bytes:
    text = bytearray()
    async for chunk in response.content.iter_any():
        text += chunk
        if len(text) > LARGEST:
            raise ForgeFailed(f"an answer of more than {LARGEST} bytes")
    return bytes(text)


def _refusal(what: str, response: aiohttp.ClientResponse) -> ForgeFailed:
    """An answer other than success. Server errors, limits of rate and timeouts are tried again."""
    retry = response.headers.get("Retry-After", "")
    pause = timedelta(seconds=min(int(retry), _LONGEST_PAUSE) if retry.isdecimal() else 0)
    limited = response.status == HTTPStatus.TOO_MANY_REQUESTS or (
        response.status == HTTPStatus.FORBIDDEN and (retry != "" or response.headers.get("X-RateLimit-Remaining") == "0")
    )
    again = limited or response.status >= HTTPStatus.INTERNAL_SERVER_ERROR or response.status == HTTPStatus.REQUEST_TIMEOUT
    if limited and not pause:
        pause = timedelta(seconds=60)
    return ForgeFailed(f"{what}: status {response.status}", permanent=not again, pause=pause)
