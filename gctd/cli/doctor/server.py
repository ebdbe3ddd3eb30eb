"""Checks of the server that the settings point at: that it is a tracker, takes the token, and is on the same log."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from eventlog import EventLogError, Unavailable
from eventlog.jetstream import Connection, JetStreamLog
from gctd.broker.broker import EVENTS
from gctd.cli.doctor.finding import Check, DoctorFinding, fail, ok, unknown, warn
from gctd.client.api import Client
from gctd.domain.registry import REGISTRY
from gctd.settings import Settings
from terminalkit.client import ClientError, NotAllowed
from terminalkit.client import Unavailable as ServerUnavailable

_READ_MODEL = "tracker"
_SHOWN = 3
_LOOKED_AT = 1000
_ONE = "give --url and --nats-url of one system"
_START = "start it with: gctd serve; or set its address with --url or GCTD_URL"


def server_checks(settings: Settings, broker: Connection | Unavailable) -> Mapping[str, Check]:
    """The checks by name."""
    return {
        "server": lambda: _server(settings, broker),
        "reads": lambda: _readiness(settings, "reads"),
        "writes": lambda: _readiness(settings, "writes"),
        "log": lambda: _log(settings),
        "capabilities": lambda: _capabilities(settings),
    }


async def _server(settings: Settings, broker: Connection | Unavailable) -> DoctorFinding:
    try:
        async with Client(settings.url, token=settings.auth_token) as client:
            standing = await client.standing()
    except NotAllowed as error:
        return fail(f"{settings.url}: {error}", "set auth_token (GCTD_AUTH_TOKEN) to the token that the server was given")
    except ServerUnavailable as error:
        return fail(str(error), "see `gctd serve`'s log and the other checks here" if error.status else _START)
    except ClientError as error:
        return fail(f"{settings.url} is no tracker: {error}", _START)
    if standing.get("read_model") != _READ_MODEL or standing.get("stream") != EVENTS:
        return fail(f"{settings.url} is another service, of read model {standing.get('read_model')!r}", _START)
    if isinstance(broker, Unavailable):
        return unknown(
            f"{settings.url} is a tracker; whether it works on the log at nats_url is not known, since the broker is away",
            "see the check of the broker",
        )
    try:
        head = await JetStreamLog(broker, EVENTS, REGISTRY).head()
    except EventLogError as error:
        return fail(f"{settings.url} is a tracker, but the broker at nats_url has no event stream for it: {error}", _ONE)
    if standing.get("incarnation") != head.incarnation:
        return fail(
            f"{settings.url} works on another event stream than the broker at nats_url has",
            f"{_ONE}; if they are, see docs/guides/operation.md: the stream was replaced",
        )
    return ok(f"{settings.url} is a tracker on this event stream")


async def _capabilities(settings: Settings) -> DoctorFinding | None:
    """Tasks that no present worker can run."""
    try:
        async with Client(settings.url, token=settings.auth_token) as client:
            waiting = await client.tasks(status="queued", under_way=True, limit=_LOOKED_AT)
    except ClientError:
        return unknown("the server did not list its tasks", "see the check of the server")
    reasons = Counter(task.reason for task in waiting if task.reason)
    if not reasons:
        seen = "no task waits" if len(waiting) < _LOOKED_AT else f"the {_LOOKED_AT} newest tasks in the queue do not wait"
        return ok(f"{seen} for a capability that no worker has")
    said = "; ".join(f"{count} tasks wait: {reason}" for reason, count in reasons.most_common(_SHOWN))
    return warn(said, "start a worker that has it (gctd worker list shows the capabilities), or cancel the tasks")


async def _readiness(settings: Settings, concern: str) -> DoctorFinding:
    fix = "see docs/guides/operation.md, section Health, for the reason"
    try:
        async with Client(settings.url, token=settings.auth_token) as client:
            said = await client.readiness(concern)
    except ServerUnavailable as error:
        if error.status is None:
            return unknown(f"the server cannot be asked: {error}", "see the check of the server")
        return fail(str(error), fix)
    except ClientError as error:
        return unknown(f"the server does not say: {error}", "see the check of the server")
    found = said.get(concern)
    if found == "ok":
        return ok(f"the server is ready for {concern}")
    return unknown(str(found or f"{settings.url} does not tell its {concern} apart"), "set monitoring_url of the server")


async def _log(settings: Settings) -> DoctorFinding:
    """The findings of the server in its passes over the log."""
    try:
        async with Client(settings.url, token=settings.auth_token) as client:
            scrub = (await client.standing()).get("scrub") or {}
    except ClientError as error:
        return unknown(f"the server does not tell: {error}", "see the check of the server")
    if scrub.get("damaged"):
        first = "; ".join(scrub.get("found", [])[:_SHOWN])
        text = f"{scrub['damaged']} records are damaged: {first}. {_passes(scrub)}"
        return fail(text, "run: projections repair; see docs/guides/operation.md, A damaged log; delete nothing")
    if scrub.get("completed") is None:
        return unknown(f"the server has not read the whole log yet. {_passes(scrub)}", "wait; or run: projections scrub")
    return ok(f"the server found no damage in it. {_passes(scrub)}")


def _passes(scrub: Mapping[str, Any]) -> str:
    """The last complete pass over the log, and the progress of the one that runs."""
    completed, position, until = scrub.get("completed"), scrub.get("position"), scrub.get("until")
    last = f"the last complete pass ended at {completed}" if completed else "no pass is complete"
    runs = position is not None and until is not None and position < until
    return f"{last}; a pass has reached sequence {position} of {until}" if runs else last
