"""Users of an embedded nats-server, with passwords of 256 random bits in a file that only its owner can read."""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from pathlib import Path
from typing import Any, Self

import attrs

from eventlog.errors import EventLogError
from eventlog.support.files import write_private

ROUTE = "route"
"""The user as which the servers of a cluster reach each other."""


class CredentialsDamaged(EventLogError):
    """The file with the passwords cannot be used; the text has the reason."""

    status = HTTPStatus.INTERNAL_SERVER_ERROR


@attrs.frozen(kw_only=True)
class BrokerUser:
    """A user of the server, and the subjects that are closed to it: all others are open."""

    name: str
    publish_denied: tuple[str, ...] = ()
    subscribe_denied: tuple[str, ...] = ()

    def permissions(self) -> dict[str, Any]:
        """As in nats-server's configuration; empty for a user who may do anything."""
        denied = {"publish": self.publish_denied, "subscribe": self.subscribe_denied}
        return {what: {"deny": list(subjects)} for what, subjects in denied.items() if subjects}


@attrs.frozen(kw_only=True)
class BrokerAccess:
    """The users of a server and their passwords. The first one is the operator, who may do anything."""

    users: tuple[BrokerUser, ...]
    passwords: Mapping[str, str] = attrs.field(repr=False)

    @classmethod
    def kept_in(cls, file: Path, users: Sequence[BrokerUser]) -> Self:
        """The passwords of a file; missing ones are made and written, with mode 0600.

        Raises CredentialsDamaged, OSError.
        """
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        names = (*(user.name for user in users), ROUTE)
        _make(file, {name: secrets.token_urlsafe(32) for name in names})
        passwords = _read(file)
        missing = [name for name in names if name not in passwords]
        if missing:
            passwords |= {name: secrets.token_urlsafe(32) for name in missing}
            write_private(file, _text(passwords))
        elif file.stat().st_mode & 0o077:
            file.chmod(0o600)
        return cls(users=tuple(users), passwords=passwords)

    @property
    def operator(self) -> str:
        """The name of the user who may do anything."""
        return self.users[0].name

    def address(self, user: str, port: int) -> str:
        """The address of a server on this machine for a user. It has the password in it: it is for no log."""
        return f"nats://{user}:{self.passwords[user]}@127.0.0.1:{port}"

    def configuration(self) -> dict[str, Any]:
        """The part `authorization` of nats-server's configuration."""
        entries = []
        for user in self.users:
            entry: dict[str, Any] = {"user": user.name, "password": self.passwords[user.name]}
            if permissions := user.permissions():
                entry["permissions"] = permissions
            entries.append(entry)
        return {"users": entries}

    def route(self, port: int) -> str:
        """The address at which another server of the cluster is reached."""
        return f"nats://{ROUTE}:{self.passwords[ROUTE]}@127.0.0.1:{port}"

    def route_configuration(self) -> dict[str, str]:
        """The part `authorization` of a cluster in nats-server's configuration."""
        return {"user": ROUTE, "password": self.passwords[ROUTE]}


def _make(file: Path, passwords: Mapping[str, str]) -> None:
    """Make the file unless it is there: of two processes that begin at the same moment, both get the passwords of one."""
    if file.exists():
        return
    draft = file.with_name(f".{file.name}.{os.getpid()}.new")
    write_private(draft, _text(passwords))
    try:
        os.link(draft, file)
    except FileExistsError:
        return
    finally:
        draft.unlink()


def _text(passwords: Mapping[str, str]) -> str:
    return json.dumps(passwords, indent=2) + "\n"


def _read(file: Path) -> dict[str, str]:
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
    except ValueError as error:
        raise CredentialsDamaged(f"{file} is not JSON: remove it, and new passwords are made") from error
    if not isinstance(content, dict) or not all(isinstance(one, str) and one for pair in content.items() for one in pair):
        raise CredentialsDamaged(f"{file} has no names and passwords: remove it, and new passwords are made")
    return content
