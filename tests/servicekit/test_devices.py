"""Codes that sign devices in: used once, for a few minutes, with the rights that the holder of the token has at most."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import attrs
import pytest

from httpkit.problems import NotPermitted
from httpkit.routes import Caller, Scope
from servicekit.access.service_access import CODE, DEVICE, Devices, NoSuchSession, PairingRefused, ServiceAccess
from servicekit.access.tokens import MOST_PAIRINGS, MOST_SESSIONS, SessionText, Token, TokenRefused, TokenRevoked
from tests.servicekit.test_tokens import Clock, issue, opened


@attrs.frozen
class House:
    """A service with tokens, and the holder of one that may write."""

    access: ServiceAccess
    devices: Devices
    clock: Clock
    holder: Caller


async def house(shared: str | None = None) -> House:
    """A house whose holder has a personal token, or the shared one."""
    clock = Clock()
    access, commands, model = await opened(clock, shared=shared)
    holder = await access.by_token(shared or await issue(commands, model, clock.now))
    assert holder is not None
    return House(access, Devices(access), clock, holder)


async def test_a_code_signs_one_device_in_with_its_rights_and_then_no_other() -> None:
    home = await house()
    offer = await home.devices.offer(home.holder, "phone of Anna", Scope.READ)
    assert offer.expires_at == home.clock.now + CODE
    found = await home.devices.claim(offer.code)
    caller = await home.access.by_session(found.cookie)
    assert caller == attrs.evolve(home.holder, scope=Scope.READ, session=offer.id)
    assert (found.session.name, found.session.scope, found.session.id) == ("phone of Anna", "read", offer.id)
    assert found.seconds == 24 * 3600, "the session ends with its token"
    with pytest.raises(PairingRefused, match="ask for a new one"):
        await home.devices.claim(offer.code)
    assert await home.access.by_session(offer.code) is None, "the code itself is no cookie"


async def test_of_many_devices_with_one_code_one_is_signed_in() -> None:
    home = await house()
    offer = await home.devices.offer(home.holder, "phone")
    found = await asyncio.gather(*(home.devices.claim(offer.code) for _ in range(8)), return_exceptions=True)
    refused = [each for each in found if isinstance(each, BaseException)]
    assert [type(each) for each in refused] == [PairingRefused] * 7
    assert [session.id for session in await home.devices.sessions(home.holder)] == [offer.id]


async def test_a_code_ends_after_minutes_with_its_token_when_it_is_withdrawn_and_when_there_are_newer_ones() -> None:
    home = await house()
    late = await home.devices.offer(home.holder, "late")
    home.clock.now += CODE
    with pytest.raises(PairingRefused):
        await home.devices.claim(late.code)
    withdrawn = await home.devices.offer(home.holder, "withdrawn")
    await home.devices.end(home.holder, withdrawn.id)
    offers = [await home.devices.offer(home.holder, f"phone {number}") for number in range(MOST_PAIRINGS + 1)]
    for offer in (withdrawn, offers[0]):
        with pytest.raises(PairingRefused):
            await home.devices.claim(offer.code)
    assert (await home.devices.claim(offers[1].code)).session.name == "phone 1"
    decider = home.access.directory.tokens.decider
    assert home.holder.token is not None
    await home.access.commands.execute(decider, home.holder.token, TokenRevoked(at=home.clock.now))
    with pytest.raises(PairingRefused):
        await home.devices.claim(offers[2].code)


@pytest.mark.parametrize("change", ["secret", "id", "token"])
async def test_a_changed_code_is_refused_and_uses_nothing_up(change: str) -> None:
    home = await house()
    offer = await home.devices.offer(home.holder, "phone")
    given, other = SessionText.parse(offer.code), SessionText.make("0" * 12)
    assert given is not None
    with pytest.raises(PairingRefused):
        await home.devices.claim(attrs.evolve(given, **{change: getattr(other, change)}).reveal())
    with pytest.raises(PairingRefused):
        await home.devices.claim("something else")
    assert (await home.devices.claim(offer.code)).session.id == offer.id


async def test_a_device_gets_no_more_rights_than_the_holder_has() -> None:
    home = await house()
    with pytest.raises(NotPermitted, match="admin"):
        await home.devices.offer(home.holder, "phone", Scope.ADMIN)
    assert (await home.devices.offer(home.holder, "phone")).scope is Scope.WRITE
    reader = await home.devices.claim((await home.devices.offer(home.holder, "wall", Scope.READ)).code)
    caller = await home.access.by_session(reader.cookie)
    assert caller is not None
    with pytest.raises(NotPermitted):
        await home.devices.offer(caller, "phone", Scope.WRITE)
    assert (await home.devices.offer(caller, "phone")).scope is Scope.READ


async def test_sessions_are_ended_by_a_holder_with_their_rights() -> None:
    home = await house()
    writer = await home.devices.claim((await home.devices.offer(home.holder, "phone")).code)
    reader = await home.devices.claim((await home.devices.offer(home.holder, "wall", Scope.READ)).code)
    wall = await home.access.by_session(reader.cookie)
    assert wall is not None
    with pytest.raises(NotPermitted, match="write"):
        await home.devices.end(wall, writer.session.id)
    await home.devices.end(home.holder, writer.session.id)
    assert await home.access.by_session(writer.cookie) is None
    with pytest.raises(NoSuchSession):
        await home.devices.end(home.holder, writer.session.id)
    await home.devices.end(wall, reader.session.id)
    assert await home.devices.sessions(home.holder) == []


async def test_a_further_device_ends_no_session_with_more_rights() -> None:
    """The oldest one with at most its rights is ended. Without one the code is refused, and can be used later."""
    home = await house()
    writers = [await home.devices.claim((await home.devices.offer(home.holder, "phone")).code) for _ in range(MOST_SESSIONS - 1)]
    walls = [await home.devices.claim((await home.devices.offer(home.holder, "wall", Scope.READ)).code) for _ in range(3)]
    assert [one.id for one in await home.devices.sessions(home.holder)] == [*(w.session.id for w in writers), walls[2].session.id]
    await home.devices.end(home.holder, walls[2].session.id)
    await home.access.open_session(home.holder)
    code = (await home.devices.offer(home.holder, "wall", Scope.READ)).code
    with pytest.raises(TokenRefused, match="20 open sessions with more rights"):
        await home.devices.claim(code)
    await home.devices.end(home.holder, writers[0].session.id)
    assert (await home.devices.claim(code)).session.name == "wall"
    full = await home.devices.claim((await home.devices.offer(home.holder, "tablet", Scope.WRITE)).code)
    ids = [one.id for one in await home.devices.sessions(home.holder)]
    assert (len(ids), ids[-1]) == (MOST_SESSIONS, full.session.id)
    assert writers[1].session.id not in ids


async def test_a_further_code_withdraws_no_code_with_more_rights() -> None:
    home = await house()
    reader = await home.devices.claim((await home.devices.offer(home.holder, "wall", Scope.READ)).code)
    wall = await home.access.by_session(reader.cookie)
    assert wall is not None
    offers = [await home.devices.offer(home.holder, "phone") for _ in range(MOST_PAIRINGS)]
    with pytest.raises(TokenRefused, match="5 unused codes with more rights"):
        await home.devices.offer(wall, "phone")
    for offer in offers:
        await home.devices.claim(offer.code)


async def test_a_device_of_the_shared_token_ends_with_that() -> None:
    home = await house(shared="t0p-secret")
    offer = await home.devices.offer(home.holder, "phone", Scope.ADMIN)
    found = await home.devices.claim(offer.code)
    assert found.seconds == DEVICE / timedelta(seconds=1)
    assert await home.access.by_session(found.cookie) is not None
    unused = await home.devices.offer(home.holder, "phone")
    for other in ("an0ther-one", None):
        changed = ServiceAccess(home.access.directory, home.access.commands, shared=other, now=home.clock)
        assert await changed.by_session(found.cookie) is None
        with pytest.raises(PairingRefused):
            await Devices(changed).claim(unused.code)


async def test_the_log_has_digests_only() -> None:
    home = await house()
    offer = await home.devices.offer(home.holder, "phone")
    found = await home.devices.claim(offer.code)
    directory = home.access.directory
    assert home.holder.token is not None
    token: Token | None = await directory.find_newest(home.holder.token)
    assert token is not None
    assert token.pairings == ()
    for text in (offer.code, found.cookie):
        parts = SessionText.parse(text)
        assert parts is not None
        assert parts.secret not in repr(token)
        assert parts.secret not in repr(offer)
        assert parts.secret not in repr(found)
