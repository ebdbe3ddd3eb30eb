"""Personal fields are sealed before they reach the log, and gone with the person's key, on either keyring."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncIterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

import attrs
import pytest
import pytest_asyncio

from eventlog import AggregateId, Commit, NewCommit, NewEvent, Registry, UndecodableCommit
from eventlog.admin.backup import back_up, restore
from eventlog.admin.declarations import parse
from eventlog.admin.reconcile import apply_declarations
from eventlog.commit import ERASED, MISSING, SEALED, Proposal, RecordedEvent, personal
from eventlog.embedded.nats import EmbeddedServer
from eventlog.jetstream.api import call
from eventlog.jetstream.connection import Connection
from eventlog.jetstream.keyring import JetStreamKeyring
from eventlog.privacy import Ciphertext, Key, Keyring, PersonalDataCipher
from eventlog.testing.memory import MemoryKeyring, MemoryLog

REGISTRY = Registry()
BOOK = AggregateId("guests.book", "hall")
NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)
DECLARED = {
    "streams": {
        "KEYS": {
            "subjects": ["guests.key.*"],
            "max_msgs_per_subject": 1,
            "max_bytes": "1MiB",
            "incarnation": True,
            "allow_direct": True,
        }
    }
}


@REGISTRY.event("Signed")
@attrs.frozen(kw_only=True)
class Signed:
    page: int
    name: str = attrs.field(metadata=personal(of="name"))
    wish: str = attrs.field(metadata=personal(of="name"))


@REGISTRY.state("guests.book")
@attrs.frozen(kw_only=True)
class Book:
    pages: int


async def sign(log: MemoryLog, name: str, wish: str, expected: int = 0) -> Commit:
    events = (NewEvent(Signed(page=expected + 1, name=name, wish=wish)),)
    commit = NewCommit(id=f"commit-{expected}", at=NOW, events=events, state=Book(pages=expected + 1))
    before = await log.at(expected)
    prev = None if before is None else before.digest
    appended = await log.append(Proposal(aggregate=BOOK, expected=expected, commit=commit, prev=prev))
    stored = await log.at(appended.sequence)
    assert stored is not None
    return stored


def fields(events: Sequence[RecordedEvent]) -> tuple[str, str]:
    (event,) = events
    return event.data.name, event.data.wish


def with_memory(keyring: Keyring) -> tuple[MemoryLog, PersonalDataCipher]:
    people = PersonalDataCipher(keyring)
    return MemoryLog(REGISTRY, people=people), people


async def test_what_is_personal_is_not_in_the_log_and_is_read_with_the_key() -> None:
    log, _ = with_memory(MemoryKeyring())
    commit = await sign(log, "Anna Weiß", "many happy returns")
    assert b"Anna" not in commit.data
    assert b"happy" not in commit.data
    assert fields(commit.events) == ("", "")
    assert fields(await log.decrypt(commit)) == ("Anna Weiß", "many happy returns")
    assert (await log.decrypt(commit))[0].data.page == 1


async def test_another_reader_finds_the_key_and_one_without_a_keyring_says_that_there_is_something() -> None:
    keyring = MemoryKeyring()
    log, _ = with_memory(keyring)
    commit = await sign(log, "anna", "hello")
    assert fields(await PersonalDataCipher(keyring).decrypt(commit, REGISTRY)) == ("anna", "hello")
    assert fields(await MemoryLog(REGISTRY).decrypt(commit)) == (SEALED, SEALED)


async def test_who_is_erased_cannot_be_read_any_more_by_anybody_and_begins_anew() -> None:
    keyring = MemoryKeyring()
    log, people = with_memory(keyring)
    first = await sign(log, "anna", "hello")
    other = await sign(log, "bert", "hi", expected=1)
    key = await people.find("ANNA ")
    assert key is not None
    await people.destroy(key)

    async def erased(_: bool) -> list[str]:
        return [key.id]

    other_reader = PersonalDataCipher(keyring)
    other_reader.erased = erased
    for reader in (people, other_reader):
        assert fields(await reader.decrypt(first, REGISTRY)) == (ERASED, ERASED)
        assert fields(await reader.decrypt(other, REGISTRY)) == ("bert", "hi")
    assert await people.find("anna") is None
    later = await sign(log, "anna", "back again", expected=2)
    assert fields(await log.decrypt(later)) == ("anna", "back again")
    assert fields(await log.decrypt(first)) == (ERASED, ERASED)


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


async def test_a_key_that_is_missing_is_no_erasure_and_reads_again_once_it_is_restored() -> None:
    """Restored keys can have places that were read before, and a write after the restoration does not destroy one."""
    whole, partly = MemoryKeyring(), MemoryKeyring()
    log, _ = with_memory(whole)
    commit = await sign(log, "anna", "hello")
    await partly.key_of("bert")
    clock = Clock()
    people = PersonalDataCipher(partly, now=clock)
    assert fields(await people.decrypt(commit, REGISTRY)) == (MISSING, MISSING)
    (key,) = await whole.after(0)
    assert set(people.missing) == {key.id}
    partly._keys["anna"] = key
    assert fields(await people.decrypt(commit, REGISTRY)) == (MISSING, MISSING)  # it was looked for a moment ago
    clock.now += 10
    assert fields(await people.decrypt(commit, REGISTRY)) == ("anna", "hello")
    assert not people.missing
    later = MemoryLog(REGISTRY, people=people)
    await sign(later, "anna", "again")
    assert await partly.find("anna") == key


async def test_after_the_keys_are_replaced_nothing_is_written_under_a_key_that_is_gone() -> None:
    """The stream of keys was lost, and a new one replaces it: a key that only this process has would be lost when it ends."""
    keyring = MemoryKeyring()
    log, people = with_memory(keyring)
    first = await sign(log, "anna", "hello")
    keyring._keys.clear()
    await people.look_for((), reload=True)
    assert fields(await log.decrypt(first)) == (MISSING, MISSING)
    second = await sign(log, "anna", "again", expected=1)
    assert fields(await PersonalDataCipher(keyring).decrypt(second, REGISTRY)) == ("anna", "again")


async def test_a_key_that_a_write_finds_again_is_not_missing_any_more() -> None:
    keyring, returned = MemoryKeyring(), list[str]()
    log, _ = with_memory(keyring)
    commit = await sign(log, "anna", "hello")
    restored = dict(keyring._keys)
    keyring._keys.clear()
    people = PersonalDataCipher(keyring)
    people.returned = lambda: returned.append("keys")
    assert fields(await people.decrypt(commit, REGISTRY)) == (MISSING, MISSING)
    keyring._keys.update(restored)
    await sign(MemoryLog(REGISTRY, people=people), "anna", "again")
    assert not people.missing
    assert returned == ["keys"]


async def test_a_key_of_an_erased_person_that_is_restored_is_not_used_from_the_first_read_on() -> None:
    keyring = MemoryKeyring()
    log, _ = with_memory(keyring)
    commit = await sign(log, "anna", "hello")
    (key,) = await keyring.after(0)

    async def erased(_: bool) -> list[str]:
        return [key.id]

    people = PersonalDataCipher(keyring)
    people.erased = erased
    assert fields(await people.decrypt(commit, REGISTRY)) == (ERASED, ERASED)
    second = MemoryLog(REGISTRY, people=people)
    await sign(second, "anna", "again")
    assert (await keyring.key_of("anna")).id != key.id


async def test_after_an_erasure_elsewhere_nothing_is_written_under_the_old_key() -> None:
    keyring = MemoryKeyring()
    log, people = with_memory(keyring)
    first = await sign(log, "anna", "hello")
    key = await people.find("anna")
    assert key is not None
    people.forget(key.id)  # the event has come, the key is still there
    second = await sign(log, "anna", "again", expected=1)
    assert fields(await log.decrypt(first)) == (ERASED, ERASED)
    assert fields(await log.decrypt(second)) == ("anna", "again")
    assert [found.id for found in await keyring.after(0)] != [key.id]


async def test_what_was_sealed_for_one_place_does_not_open_at_another() -> None:
    log, people = with_memory(MemoryKeyring())
    commit = await sign(log, "anna", "hello")
    (event,) = commit.events
    assert event.sealed is not None
    assert await people.open([Ciphertext(event.sealed, BOOK.subject, "Signed")]) == [{"name": "anna", "wish": "hello"}]
    changed = event.sealed[:-6] + ("A" if event.sealed[-6] != "A" else "B") + event.sealed[-5:]
    for wrong in (
        Ciphertext(event.sealed, "guests.book.attic", "Signed"),
        Ciphertext(event.sealed, BOOK.subject, "Left"),
        Ciphertext(changed, BOOK.subject, "Signed"),
        Ciphertext(event.sealed[:40], BOOK.subject, "Signed"),
    ):
        with pytest.raises(UndecodableCommit):
            await people.open([wrong])


async def test_what_names_nobody_is_not_sealed_and_what_was_stored_in_plain_is_read() -> None:
    log, people = with_memory(MemoryKeyring())
    nobody = await sign(log, "  ", "hello")
    assert fields(nobody.events) == fields(await log.decrypt(nobody)) == ("  ", "hello")
    plain = b'{"t":"Signed","d":{"page":1,"name":"anna","wish":"hello"}}'
    data = b'{"id":"c","at":"2026-11-20T12:00:00Z","events":[%b],"state":{"d":{}}}' % plain
    assert fields(await people.decrypt(Commit(1, BOOK.subject, data, REGISTRY), REGISTRY)) == ("anna", "hello")


async def test_without_a_keyring_nothing_personal_is_written() -> None:
    with pytest.raises(ValueError, match="no keyring"):
        await sign(MemoryLog(REGISTRY), "anna", "hello")


def test_a_state_has_no_personal_fields_and_an_event_has_those_of_one_person() -> None:
    @attrs.frozen
    class OfNobody:
        wish: str = attrs.field(metadata=personal(of="name"))

    @attrs.frozen
    class OfTwo:
        one: str = attrs.field(metadata=personal(of="one"))
        two: str = attrs.field(metadata=personal(of="two"))

    with pytest.raises(ValueError, match="state has no personal"):
        Registry().state("guests.guest")(Signed)
    for wrong in (OfNobody, OfTwo):
        with pytest.raises(ValueError, match="of one person"):
            Registry().event("Wrong")(wrong)


class KeyringConformance:
    """The promises of every keyring."""

    async def test_all_who_ask_at_once_get_the_same_key_and_others_another(self, keyring: Keyring) -> None:
        keys = await asyncio.gather(*(keyring.key_of("anna") for _ in range(8)))
        assert len(set(keys)) == 1
        assert {key.place for key in keys} == {keys[0].place}
        assert (await keyring.key_of("bert")).secret != keys[0].secret
        assert await keyring.find("anna") == keys[0]
        assert await keyring.find("carl") is None

    async def test_keys_are_listed_from_a_place_on(self, keyring: Keyring) -> None:
        made = [await keyring.key_of(f"person {number}") for number in range(5)]
        assert list(await keyring.after(0)) == made
        assert list(await keyring.after(made[2].place)) == made[3:]
        await keyring.destroy(made[4])
        assert list(await keyring.after(made[2].place)) == made[3:4]
        assert list(await keyring.after(made[4].place)) == []

    async def test_a_destroyed_key_is_gone_and_the_next_is_another(self, keyring: Keyring) -> None:
        key = await keyring.key_of("anna")
        await keyring.destroy(key)
        await keyring.destroy(key)
        assert await keyring.find("anna") is None
        again = await keyring.key_of("anna")
        assert (again.id, again.secret) != (key.id, key.secret)
        await keyring.destroy(key)
        assert await keyring.find("anna") == again
        assert again.place > key.place


class TestMemoryKeyring(KeyringConformance):
    @pytest.fixture
    def keyring(self) -> Keyring:
        return MemoryKeyring()


@pytest.mark.real
class TestJetStreamKeyring(KeyringConformance):
    @pytest_asyncio.fixture
    async def keyring(self, nats_url: str) -> AsyncIterator[Keyring]:
        async with Connection.open(nats_url, name="keys") as connection:
            assert await apply_declarations(connection, parse(DECLARED)) == []
            yield JetStreamKeyring(connection, "KEYS", "guests.key")


@pytest.mark.real
async def test_a_key_is_found_in_a_copy_that_replaces_another_stream_between_two_looks(nats_url: str, tmp_path: Path) -> None:
    async with Connection.open(nats_url, name="keys") as connection:
        assert await apply_declarations(connection, parse(DECLARED)) == []
        keyring = JetStreamKeyring(connection, "KEYS", "guests.key")
        key = await JetStreamKeyring(connection, "KEYS", "guests.key").key_of("anna")
        await back_up(connection, "KEYS", tmp_path)
        await call(connection, "STREAM.DELETE.KEYS")
        await apply_declarations(connection, parse(DECLARED))
        assert await keyring.find("anna") is None
        empty = await keyring.identity()
        assert empty == await keyring.identity()
        await call(connection, "STREAM.DELETE.KEYS")
        await restore(connection, tmp_path / "KEYS.json")
        assert await keyring.find("anna") == key
        assert await keyring.key_of("anna") == key
        assert await keyring.identity() != empty


@pytest.mark.real
async def test_the_bytes_of_a_destroyed_key_are_not_on_the_disk(tmp_path: Path) -> None:
    async with EmbeddedServer(tmp_path) as server, Connection.open(server.url, name="keys") as connection:
        await apply_declarations(connection, parse(DECLARED))
        keyring = JetStreamKeyring(connection, "KEYS", "guests.key")
        keys = [await keyring.key_of(name) for name in ("anna", "bert", "carl")]
        assert [found(tmp_path, key) for key in keys] == [True, True, True]
        await keyring.destroy(keys[0])
        await keyring.destroy(keys[2])
        assert [found(tmp_path, key) for key in keys] == [False, True, False]
    assert [found(tmp_path, key) for key in keys] == [False, True, False]


def found(directory: Path, key: Key) -> bool:
    """Whether any file has the secret or the id, as they are or as they are written."""
    sought = (key.secret, base64.b64encode(key.secret), key.id.encode())
    return any(one in file.read_bytes() for file in directory.rglob("*") if file.is_file() for one in sought)
