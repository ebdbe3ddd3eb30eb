"""Streams that take no writes while they are repaired or restored.

A closed stream has a subject that no process writes to, and its own subjects are in its metadata. nats-server restores a stream
record by record. Until the end it shows the stream as if it were whole, and accepts messages for it. So a restored stream is
closed until all of its records are there: readers wait, and no commit gets a sequence that belongs to a record.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from eventlog.errors import Unavailable

_SUBJECTS, _COPY = "subjects-before-closing", "restored-from"


class StreamClosed(Unavailable):
    """The stream is being repaired or restored. The commit was not stored."""


def closed(config: Mapping[str, Any], *, copy: str | None = None) -> dict[str, Any]:
    """Return the configuration with which a stream takes no writes.

    `copy`: the SHA-256 of the snapshot that the stream is restored from. Readers wait then.
    """
    config = opened(config)
    metadata = {**config["metadata"], _SUBJECTS: msgspec.json.encode(config["subjects"]).decode()}
    if copy is not None:
        metadata[_COPY] = copy
    return {**config, "subjects": [f"closed.{config['name']}.>"], "metadata": metadata}


def opened(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return the configuration with which the stream takes writes again; an open one as it is."""
    metadata = dict(config.get("metadata") or {})
    subjects = metadata.pop(_SUBJECTS, None)
    metadata.pop(_COPY, None)
    return {**config, "subjects": config["subjects"] if subjects is None else msgspec.json.decode(subjects), "metadata": metadata}


def is_closed(config: Mapping[str, Any]) -> bool:
    """Whether the stream takes no writes."""
    return _SUBJECTS in (config.get("metadata") or {})


def copy_of(config: Mapping[str, Any]) -> str | None:
    """Return the SHA-256 of the snapshot that the stream is restored from; None if all of its records are there."""
    copy: str | None = (config.get("metadata") or {}).get(_COPY)
    return copy


def reason_of(info: Mapping[str, Any]) -> str | None:
    """Return why the stream takes no writes, or None if it is open. `info` is the server's answer to STREAM.INFO."""
    config = info["config"]
    if copy_of(config) is not None:
        return (
            f"the stream {config['name']} is being restored from a copy, and has {info['state']['messages']} records so far. "
            "If the command was killed, `projections streams restore` with the same directory completes it"
        )
    if is_closed(config):
        return (
            f"the stream {config['name']} is being repaired. If the command was killed, `projections repair --apply` opens the "
            "stream again"
        )
    return None


def check_whole(info: Mapping[str, Any]) -> None:
    """Raise StreamClosed if records of the stream are not restored yet: they are not lost."""
    if copy_of(info["config"]) is not None:
        raise StreamClosed(reason_of(info))


def check_open(info: Mapping[str, Any]) -> None:
    """Raise StreamClosed if the stream takes no writes."""
    if (reason := reason_of(info)) is not None:
        raise StreamClosed(reason)
