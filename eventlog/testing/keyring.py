"""The keys of persons in memory, for tests of services."""

from __future__ import annotations

from collections.abc import Sequence

from eventlog.privacy.encryption import Key


class MemoryKeyring:
    """The keys of persons in this object: `eventlog.privacy.encryption.Keyring`."""

    def __init__(self) -> None:
        self._keys: dict[str, Key] = {}
        self._made = self._replacements = 0

    async def key_of(self, person: str) -> Key:
        """See `eventlog.privacy.encryption.Keyring.key_of`."""
        if person not in self._keys:
            self._made += 1
            self._keys[person] = Key.new(self._made)
        return self._keys[person]

    async def find(self, person: str) -> Key | None:
        """See `eventlog.privacy.encryption.Keyring.find`."""
        return self._keys.get(person)

    async def after(self, place: int) -> Sequence[Key]:
        """See `eventlog.privacy.encryption.Keyring.after`."""
        return sorted((key for key in self._keys.values() if key.place > place), key=lambda key: key.place)

    async def identity(self) -> str:
        """See `eventlog.privacy.encryption.Keyring.identity`."""
        return str(self._replacements)

    def replace(self) -> None:
        """Lose all keys, as if a new store were in the place of this one."""
        self._keys = {}
        self._replacements += 1

    async def destroy(self, key: Key) -> None:
        """See `eventlog.privacy.encryption.Keyring.destroy`."""
        self._keys = {person: one for person, one in self._keys.items() if one != key}
