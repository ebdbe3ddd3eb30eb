"""Answers that are a file rather than a resource: with an entity tag, and a name for saving."""

from __future__ import annotations

import hashlib
from http import HTTPStatus

from aiohttp import web


def file_answer(
    request: web.Request,
    body: bytes,
    media: str,
    *,
    cache: str = "no-cache",
    save_as: str | None = None,
    public: bool = False,
) -> web.Response:
    """Return the bytes as an answer, or 304 if the client has them.

    `media` may have a charset. `cache` is Cache-Control. `save_as` is the name, of printable ASCII, under which a browser saves
    it. `public`: pages of other origins may show it.
    """
    etag = hashlib.sha256(body).hexdigest()[:32]
    headers = {"ETag": f'"{etag}"', "Cache-Control": cache}
    if public:
        headers["Cross-Origin-Resource-Policy"] = "cross-origin"
    if any(tag.value in ("*", etag) for tag in request.if_none_match or ()):
        return web.Response(status=HTTPStatus.NOT_MODIFIED, headers=headers)
    if save_as is not None:
        quoted = save_as.replace("\\", "_").replace('"', "_")
        headers["Content-Disposition"] = f'attachment; filename="{quoted}"'
    headers["Content-Type"] = media
    return web.Response(body=body, headers=headers)
