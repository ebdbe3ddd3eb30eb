"""Routes of webhooks. They ask for no token: a delivery is signed by the forge."""

from __future__ import annotations

from eventlog import Context
from gctd.control.forges.receiving import NotSigned, Posted, Receipt
from gctd.http.services import Services
from httpkit import Answer, Call, Forbidden, Route, header, member, message, payload

LARGEST = 25 * 1024 * 1024
"""Bytes of a delivery: forges send no larger ones."""
_HEADER = 256
_EVENT = {
    "type": "object",
    "properties": {"ref": {"description": "the branch of a push", "examples": ["refs/heads/main"]}},
}
"""The schema of a delivery: the forges' own documents describe all members."""


@message
class GithubDelivery:
    """A delivery of a webhook of GitHub."""

    body: bytes = payload("application/json", description="the event, as the forge signed it", schema=_EVENT)
    event: str = header("X-GitHub-Event", default="", max_length=_HEADER, description="push, pull_request, ping, …")
    delivery: str = header("X-GitHub-Delivery", default="", max_length=_HEADER, description="the same if it is sent again")
    signature: str | None = header(
        "X-Hub-Signature-256", default=None, max_length=_HEADER, description="sha256= and the HMAC of the body with the secret"
    )


@message
class GitlabDelivery:
    """A delivery of a webhook of GitLab."""

    body: bytes = payload("application/json", description="the event", schema=_EVENT)
    event: str = header("X-Gitlab-Event", default="", max_length=_HEADER, description="Push Hook, Merge Request Hook, …")
    delivery: str = header("Idempotency-Key", default="", max_length=_HEADER, description="the same if it is sent again")
    token: str | None = header("X-Gitlab-Token", default=None, max_length=_HEADER, description="the secret of the webhook")


@message
class TakenBody:
    """What follows from a delivery."""

    id: str | None = member(description="id of the delivery in the log; null if nothing follows from it")
    note: str = member(description="why nothing follows, or that it was delivered before")


async def take_github_delivery(request: GithubDelivery, call: Call[Services]) -> Answer[TakenBody]:
    """Take a delivery of GitHub: a push, or a pull request that was opened or changed, is analysed and answered there."""
    posted = Posted(kind="github", event=request.event, delivery=request.delivery, body=request.body, signature=request.signature)
    return await _take(posted, call)


async def take_gitlab_delivery(request: GitlabDelivery, call: Call[Services]) -> Answer[TakenBody]:
    """Take a delivery of GitLab: a push, or a merge request that was opened or changed, is analysed and answered there."""
    posted = Posted(kind="gitlab", event=request.event, delivery=request.delivery, body=request.body, token=request.token)
    return await _take(posted, call)


async def _take(posted: Posted, call: Call[Services]) -> Answer[TakenBody]:
    # An idempotency key is not taken: GitLab's header of that name is its delivery id.
    context = Context(correlation=call.request_id, traceparent=call.traceparent)
    try:
        taken: Receipt = await call.services.hooks.take(posted, context)
    except NotSigned:
        raise Forbidden("no configured forge signed this delivery: compare the secret of the webhook with forges_file") from None
    return Answer(TakenBody(id=taken.id, note=taken.note), sequence=taken.sequence or None)


ROUTES = (
    Route(
        "POST",
        "/api/hooks/github",
        take_github_delivery,
        summary="Webhook of GitHub",
        tags=("hooks",),
        status=202,
        errors=(403, 409),
        max_body=LARGEST,
        open=True,
    ),
    Route(
        "POST",
        "/api/hooks/gitlab",
        take_gitlab_delivery,
        summary="Webhook of GitLab",
        tags=("hooks",),
        status=202,
        errors=(403, 409),
        max_body=LARGEST,
        open=True,
    ),
)
