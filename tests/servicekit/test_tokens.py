"""Tokens as values: their texts, their rules, and how a process finds them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from http import HTTPStatus
from typing import Any

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventlog import AggregateDamaged, Registry
from eventlog.commands import Commands
from eventlog.testing.memory import MemoryLog
from httpkit.routes import Scope
from servicekit.access.service_access import ServiceAccess, TokenDirectory
from servicekit.access.tokens import (
    COARSE,
    MOST_SESSIONS,
    NoSuchToken,
    SessionClosed,
    SessionOpened,
    SessionText,
    Token,
    TokenIssued,
    TokenModel,
    TokenRefused,
    TokenRevoked,
    TokenText,
    TokenUsed,
    decide,
    digest,
    evolve,
    register,
)
from servicekit.server import guard_of
from servicekit.settings import ServiceSettings
from terminalkit.config.loading import SettingsError

T0 = datetime(2026, 11, 20, 12, tzinfo=UTC)
ISSUE = TokenIssued(id="0123456789ab", name="ci", scope="write", digest="d", expires_at=T0 + timedelta(days=1), at=T0)


def test_a_token_is_read_back_and_one_wrong_character_makes_it_none() -> None:
    made = TokenText.make("gctd")
    text = made.reveal()
    assert TokenText.parse(text) == made
    for place in range(len(text)):
        wrong = "a" if text[place] != "a" else "b"
        other = TokenText.parse(text[:place] + wrong + text[place + 1 :])
        assert other is None, place
    assert made.secret not in repr(made)
    assert made.secret not in made.digest


@given(st.text(max_size=90))
def test_no_other_text_is_a_token_or_a_session(text: str) -> None:
    assert TokenText.parse(text) is None
    assert SessionText.parse(text) is None


def test_a_scope_includes_those_before_it() -> None:
    order = [Scope.READ, Scope.WRITE, Scope.ADMIN]
    for mine in order:
        assert [mine.covers(other) for other in order] == [order.index(mine) >= order.index(other) for other in order]


def after(*commands: Any) -> Token:
    """The state after commands."""
    state: Token | None = None
    for command in commands:
        for event in decide(command, state):
            state = evolve(state, event)
    assert state is not None
    return state


def test_a_token_is_valid_until_it_expires_or_is_revoked() -> None:
    issued = after(ISSUE)
    assert [issued.is_valid(T0 + timedelta(hours=hours)) for hours in (0, 23, 24, 25)] == [True, True, False, False]
    revoked = after(ISSUE, TokenRevoked(at=T0))
    assert not revoked.is_valid(T0)
    assert decide(TokenRevoked(at=T0), revoked) == []


def test_use_is_noted_once_an_hour_and_never_of_a_token_that_is_not_valid() -> None:
    used = after(ISSUE, TokenUsed(at=T0))
    assert decide(TokenUsed(at=T0 + COARSE - timedelta(seconds=1)), used) == []
    assert len(decide(TokenUsed(at=T0 + COARSE), used)) == 1
    assert decide(TokenUsed(at=T0 + timedelta(days=2)), used) == []


def test_sessions_end_with_their_token_and_their_number_is_bounded() -> None:
    opening = [
        SessionOpened(session=f"s{number}", digest="d", expires_at=T0 + timedelta(hours=1), at=T0)
        for number in range(MOST_SESSIONS + 5)
    ]
    state = after(ISSUE, *opening)
    assert [one.id for one in state.sessions] == [f"s{number}" for number in range(5, MOST_SESSIONS + 5)]
    assert state.session("s9", T0) is not None
    assert state.session("s9", T0 + timedelta(hours=1)) is None
    closed = after(ISSUE, *opening, SessionClosed(session="s9", at=T0))
    assert closed.session("s9", T0) is None
    assert after(ISSUE, *opening, TokenRevoked(at=T0)).sessions == ()
    with pytest.raises(TokenRefused):
        decide(opening[0], after(ISSUE, TokenRevoked(at=T0)))
    with pytest.raises(NoSuchToken):
        decide(TokenRevoked(at=T0), None)


@attrs.define
class Clock:
    now: datetime = T0

    def __call__(self) -> datetime:
        return self.now


def empty_log() -> MemoryLog:
    """A log in memory for the tokens of a shop."""
    registry = Registry()
    register(registry, "shop.token")
    return MemoryLog(registry)


async def opened(
    clock: Clock, shared: str | None = None, log: MemoryLog | None = None
) -> tuple[ServiceAccess, Commands, TokenModel]:
    """The access of a service over a log in memory."""
    model, log = TokenModel.of("shop"), log or empty_log()

    async def reader() -> Any:
        raise AssertionError("the log answers")

    def seconds() -> float:
        return clock.now.timestamp()

    directory = TokenDirectory(model, log, reader, is_connected=lambda: True, clock=seconds)
    commands = Commands(log, now=clock)
    return ServiceAccess(directory, commands, shared=shared, now=clock), commands, model


async def issue(commands: Commands, model: TokenModel, at: datetime) -> str:
    """A token that is valid for a day."""
    made = TokenText.make(model.service)
    command = attrs.evolve(ISSUE, id=made.id, digest=made.digest, expires_at=at + timedelta(days=1), at=at)
    await commands.execute(model.decider, made.id, command)
    return made.reveal()


async def test_a_token_and_its_session_end_at_the_time_of_expiry() -> None:
    clock = Clock()
    access, commands, model = await opened(clock)
    text = await issue(commands, model, clock.now)
    caller = await access.by_token(text)
    assert caller is not None
    assert (caller.name, caller.scope, caller.realm) == ("ci", Scope.WRITE, "shop")
    cookie, seconds = await access.open_session(caller)
    assert seconds == 24 * 3600, "a session ends with its token at the latest"
    assert await access.by_session(cookie) == attrs.evolve(caller, session=cookie.split(".")[1])
    clock.now += timedelta(days=1)
    assert await access.by_token(text) is None
    assert await access.by_session(cookie) is None


async def test_a_token_is_not_valid_while_the_record_of_its_revocation_cannot_be_read() -> None:
    """The tables are not asked: they do not have it either."""
    log = empty_log()
    access, commands, model = await opened(Clock(), log=log)
    text = await issue(commands, model, T0)
    given = TokenText.parse(text)
    assert given is not None
    revoked = await commands.execute(model.decider, given.id, TokenRevoked(at=T0))
    log.damage(revoked.sequence)
    with pytest.raises(AggregateDamaged) as raised:
        await access.by_token(text)
    assert raised.value.status == HTTPStatus.SERVICE_UNAVAILABLE


async def test_a_session_of_the_shared_token_ends_when_that_is_another_one() -> None:
    clock = Clock()
    access, commands, model = await opened(clock, shared="t0p-secret")
    caller = await access.by_token("t0p-secret")
    assert caller is not None
    cookie, _ = await access.open_session(caller)
    assert await access.by_session(cookie) is not None
    other = ServiceAccess(access.directory, commands, shared="an0ther-one", now=clock)
    assert await other.by_session(cookie) is None
    await access.close_session(cookie)
    assert await access.by_session(cookie) is None
    assert model.service == "shop"


async def test_a_secret_of_another_token_opens_nothing() -> None:
    access, commands, model = await opened(Clock())
    mine, other = TokenText.parse(await issue(commands, model, T0)), TokenText.parse(await issue(commands, model, T0))
    assert mine is not None
    assert other is not None
    for forged in (attrs.evolve(mine, secret=other.secret), attrs.evolve(mine, service="bank"), attrs.evolve(mine, id="0" * 12)):
        assert await access.by_token(forged.reveal()) is None
    caller = await access.by_token(mine.reveal())
    assert caller is not None
    cookie = SessionText.parse((await access.open_session(caller))[0])
    assert cookie is not None
    assert await access.by_session(attrs.evolve(cookie, secret=mine.secret).reveal()) is None
    assert await access.by_session(attrs.evolve(cookie, token=other.id).reveal()) is None
    assert digest("a", "key") != digest("a")


@pytest.mark.parametrize(
    ("settings", "required", "nobody"),
    [
        (ServiceSettings(), False, "local"),
        (ServiceSettings(host="::1"), False, "local"),
        (ServiceSettings(require_tokens=True), True, "local"),
        (ServiceSettings(auth_token="t0p-secret"), True, "local"),
        (ServiceSettings(trusted_proxies=("127.0.0.1",)), True, "anonymous"),
        (ServiceSettings(host="0.0.0.0"), True, "anonymous"),
        (ServiceSettings(host="0.0.0.0", insecure=True), False, "anonymous"),
        (ServiceSettings(host="0.0.0.0", insecure=True, auth_token="t0p-secret"), True, "anonymous"),
    ],
)
def test_a_token_is_asked_for_where_others_than_this_machine_reach_the_service(
    settings: ServiceSettings, required: bool, nobody: str
) -> None:
    guard = guard_of(settings, name="shop")
    assert (guard.required, guard.nobody.actor, guard.cookie) == (required, nobody, "shop_session")


@pytest.mark.parametrize("entry", ["0.0.0.0/0", "::/0", "proxy.example", "*", ""])
def test_a_proxy_is_named_by_its_address(entry: str) -> None:
    with pytest.raises(SettingsError, match="trusted_proxies"):
        guard_of(ServiceSettings(trusted_proxies=(entry,)))
