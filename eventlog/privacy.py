"""Sealing personal data, with a key for each person: without the key it cannot be read (crypto-shredding).

The keys are in a keyring, never in the log. Sealing is AES-256-GCM-SIV (RFC 8452), bound to the aggregate and the type of the
event; a nonce is random. A sealed text is `<id of the key>.<nonce and ciphertext, base64url>`: the id is random as well, so that
the log has no link to a name.
"""

from __future__ import annotations

import asyncio
import os
import time
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from typing import Any, Protocol

import attrs
import msgspec
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCMSIV

from eventlog.commit import (
    ERASED,
    MISSING,
    SEALED,
    Commit,
    PersonalFields,
    Proposal,
    RecordedEvent,
    Registry,
    person_of,
    plain_name,
)
from eventlog.errors import UndecodableCommit

KEY_BYTES = 32
_ID_BYTES = 16
_NONCE_BYTES = 12
_LOOKS_AGAIN = 2.0
"""Seconds between two looks at all keys for one that is missing: restored keys can have any place."""


@attrs.frozen
class Key:
    """A person's key: a random id, the secret, and where the keyring has it (a number that none had before)."""

    id: str
    secret: bytes = attrs.field(repr=False)
    place: int = attrs.field(eq=False)

    @staticmethod
    def new(place: int) -> Key:
        """A key that no person has."""
        return Key(os.urandom(_ID_BYTES).hex(), os.urandom(KEY_BYTES), place)


class Keyring(Protocol):
    """Where the keys of persons are: a store that is not the log. Persons are named as `plain_name` gives them.

    All raise Unavailable if it cannot be reached.
    """

    async def key_of(self, person: str) -> Key:
        """The person's key: a new one if there is none. Concurrent callers get the same key."""

    async def find(self, person: str) -> Key | None:
        """The person's key, as it is in the store now; None if there is none."""

    async def after(self, place: int) -> Sequence[Key]:
        """The keys with a place above this one, by their places, as they are in the store now."""

    async def identity(self) -> str:
        """A text that is another one as soon as another store is in this one's place; empty while there is none."""

    async def destroy(self, key: Key) -> None:
        """Remove a key for good, its bytes overwritten. Nothing happens if it is gone already."""


@attrs.frozen
class Ciphertext:
    """The place of a sealed text: subject of the aggregate, type of the event."""

    text: str
    subject: str
    type: str

    @property
    def key_id(self) -> str:
        """The id of the key that opens it."""
        return self.text.partition(".")[0]

    @property
    def place(self) -> bytes:
        """The associated data of the encryption."""
        return _place(self.subject, self.type)


def _place(subject: str, type_: str) -> bytes:
    return f"{subject}\n{type_}".encode()


class PersonalDataCipher:
    """Seals and opens, with the keys it has seen.

    A person is erased only if the log has the erasure: `erased` gives the ids of the keys of all who were erased before, and
    is asked before the first key is used. `forget` tells it of later ones. A key that is not there for another reason is missing.
    """

    def __init__(self, keyring: Keyring, *, now: Callable[[], float] = time.monotonic) -> None:
        self.erased: Callable[[bool], Awaitable[Collection[str]]] = _nobody
        """The ids of the keys of erased persons, by the log; True: by all that is in the log now. Raises Unavailable."""
        self.returned: Callable[[], object] = lambda: None
        """Called when keys that were missing are there again: texts that were shown without them can be read."""
        self._keyring = keyring
        self._now = now
        self._began = False
        self._looked_at = 0.0
        self._missing: set[str] = set()
        self._keys: dict[str, Key] = {}
        self._ciphers: dict[str, AESGCMSIV] = {}
        self._by_person: dict[str, Key] = {}
        self._erased: set[str] = set()
        self._reached = 0
        self._identity: str | None = None
        self._looking = asyncio.Lock()

    @property
    def missing(self) -> Collection[str]:
        """The ids of keys that were asked for and are neither in the keyring nor erased, as it was at the last look."""
        return self._missing

    # Writing

    async def encrypt(self, proposal: Proposal, registry: Registry) -> Sequence[str | None]:
        """The personal fields of each event of a proposal, sealed; None for an event without any. Raises Unavailable."""
        subject = proposal.aggregate.subject
        sealed: list[str | None] = []
        for new in proposal.commit.events:
            event, fields = new.data, registry.personal_fields(new.data)
            person = person_of(fields, event)
            sealed.append(await self._seal(event, fields, person, subject, registry) if fields is not None and person else None)
        return sealed

    async def _seal(self, event: Any, fields: PersonalFields, person: str, subject: str, registry: Registry) -> str:
        key = self._by_person.get(person) or await self._key_of(person)
        plain = msgspec.json.encode(fields.of(event))
        nonce = os.urandom(_NONCE_BYTES)
        sealed = self._cipher(key).encrypt(nonce, plain, _place(subject, registry.name_of(event)))
        return f"{key.id}.{urlsafe_b64encode(nonce + sealed).decode()}"

    async def _key_of(self, person: str) -> Key:
        await self._begin()
        key = await self._keyring.key_of(person)
        while key.id in self._erased:  # and its end has not come yet: later data has a new key
            await self._keyring.destroy(key)
            key = await self._keyring.key_of(person)
        self._by_person[person] = self._keys[key.id] = key
        self._note_missing(self._missing)
        return key

    def _cipher(self, key: Key) -> AESGCMSIV:
        found = self._ciphers.get(key.id)
        if found is None:
            found = self._ciphers[key.id] = AESGCMSIV(key.secret)
        return found

    # Reading

    async def decrypt(self, commit: Commit, registry: Registry) -> Sequence[RecordedEvent]:
        """The events of a commit with their personal fields: ERASED if the person is, MISSING without the key.

        Raises Unavailable, UndecodableCommit.
        """
        events = commit.events
        sealed = [Ciphertext(event.sealed, commit.subject, event.type) for event in events if event.sealed is not None]
        if not sealed:
            return events
        opened = iter(await self.open(sealed))
        return tuple(event if event.sealed is None else _with(event, next(opened), registry) for event in events)

    async def open(self, sealed: Sequence[Ciphertext]) -> Sequence[Mapping[str, str] | str]:
        """The personal fields by their names, in the same order, or the text that each of them has: ERASED or MISSING.

        Raises Unavailable, and UndecodableCommit for a text that was not sealed for that place.
        """
        await self.look_for({one.key_id for one in sealed})
        return [self._open(one) for one in sealed]

    async def look_for(self, ids: Collection[str], *, reload: bool = False) -> None:
        """Load the keys with these ids. `missing` has the ones that are not there. Raises Unavailable.

        `reload`: keys that were seen are looked for too, since the store can have lost them.
        """
        await self._begin()
        unknown = self._unknown(ids)
        if not unknown and not reload:
            return
        async with self._looking:
            is_new = bool(self._unknown(unknown) - self._missing)
            if is_new and not reload:
                await self._load(self._reached)
            if reload or (self._unknown(unknown) and (is_new or self._now() - self._looked_at >= _LOOKS_AGAIN)):
                await self._load_all()
                for id_ in await self.erased(True):  # noqa: FBT003 - one of two forms; after the keys: the event of an erasure precedes the key's end
                    self.forget(id_)
                self._looked_at = self._now()
            self._note_missing(self._missing.union(ids))

    def _note_missing(self, ids: Collection[str]) -> None:
        before, self._missing = self._missing, self._unknown(ids)
        if any(id_ in self._keys for id_ in before):
            self.returned()

    def _unknown(self, ids: Collection[str]) -> set[str]:
        return {id_ for id_ in ids if id_ not in self._keys and id_ not in self._erased}

    def _open(self, sealed: Ciphertext) -> Mapping[str, str] | str:
        key = self._keys.get(sealed.key_id)
        if key is None:
            return ERASED if sealed.key_id in self._erased else MISSING
        try:
            bytes_ = urlsafe_b64decode(sealed.text.partition(".")[2])
            plain = self._cipher(key).decrypt(bytes_[:_NONCE_BYTES], bytes_[_NONCE_BYTES:], sealed.place)
        except (InvalidTag, ValueError) as error:
            raise UndecodableCommit(f"what is sealed in {sealed.type} of {sealed.subject} was not sealed there") from error
        fields: Mapping[str, str] = msgspec.json.decode(plain)
        return fields

    async def _begin(self) -> None:
        """Forget the keys of all who were erased before this process started, which a restored copy of the keys can have."""
        if not self._began:
            for id_ in await self.erased(False):  # noqa: FBT003 - likewise
                self.forget(id_)
            self._began = True

    async def _load(self, place: int) -> None:
        self._add(await self._keyring.after(place))

    def _add(self, keys: Sequence[Key]) -> None:
        for key in keys:
            if key.id not in self._erased:
                self._keys[key.id] = key
            self._reached = max(self._reached, key.place)

    async def _load_all(self) -> None:
        """Also drop the keys that are gone: a text that is sealed with a key of no store is lost when this process ends."""
        before = set(self._keys)
        stored = await self._keyring.after(0)
        for id_ in before.difference(key.id for key in stored):
            self._drop(id_)
        self._reached = 0
        self._add(stored)

    async def is_replaced(self) -> bool:
        """Whether another keyring is in the place of the last call's. `look_for` has to reload its keys. Raises Unavailable."""
        before, self._identity = self._identity, await self._keyring.identity()
        return before not in {None, self._identity}

    # Erasing

    async def find(self, name: str) -> Key | None:
        """The key of the person with that name; None if the person has no data. Raises Unavailable."""
        person = plain_name(name)
        return await self._keyring.find(person) if person else None

    async def destroy(self, key: Key) -> None:
        """Make what was sealed with a key unreadable, for everybody and for good. Raises Unavailable."""
        self.forget(key.id)
        await self._keyring.destroy(key)

    async def destroy_all(self, ids: Sequence[str]) -> int:
        """Destroy these keys, if the keyring has them; returns how many there were. Raises Unavailable."""
        wanted = set(ids)
        left = [key for key in await self._keyring.after(0) if key.id in wanted]
        for key in left:
            await self.destroy(key)
        return len(left)

    def forget(self, id_: str) -> None:
        """The person with that key is erased: do not read with it any more, nor write."""
        self._erased.add(id_)
        self._missing.discard(id_)
        self._drop(id_)

    def _drop(self, id_: str) -> None:
        self._keys.pop(id_, None)
        self._ciphers.pop(id_, None)
        self._by_person = {person: key for person, key in self._by_person.items() if key.id != id_}


async def _nobody(now: bool) -> Collection[str]:  # noqa: ARG001, FBT001 - the shape of `erased`
    return ()


async def revealed(commit: Commit, registry: Registry, people: PersonalDataCipher | None) -> Sequence[RecordedEvent]:
    """`EventLog.decrypt` for a log whose persons' keys are with `people` (None: it was given no keyring)."""
    if people is not None:
        return await people.decrypt(commit, registry)
    return tuple(event if event.sealed is None else _with(event, SEALED, registry) for event in commit.events)


def _with(event: RecordedEvent, opened: Mapping[str, str] | str, registry: Registry) -> RecordedEvent:
    """The event with its personal fields, or with one text in each of them."""
    fields = registry.personal_fields(event.data)
    if fields is None:
        raise UndecodableCommit(
            f"sequence {event.position.sequence}: something is sealed in {event.type}, which has no personal fields"
        )
    values: dict[str, Any] = dict.fromkeys(fields.names, opened) if isinstance(opened, str) else dict(opened)
    return msgspec.structs.replace(event, data=attrs.evolve(event.data, **values))
