"""The sizes of streams on a disk that is smaller than their declarations.

If the server has room for all declared sizes, each stream gets its declared size. Else the declared size is an aim: a stream
that is there keeps its size, a new one gets at least `LEAST`, and nine tenths of the room are divided in proportion to the
differences from the aims. No stream shrinks. At each later start, streams grow towards their aims if there is more room then.

The aim is in the metadata of the stream. So a declaration with this size is not a difference (`eventlog.admin.reconcile`).
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import attrs

from eventlog.admin.declarations import Declarations
from eventlog.jetstream.api import Full

AIM = "aim"
"""The key of the declared size in the metadata of a stream."""
MIB = 1024**2
LEAST = 8 * MIB
_DIVIDED = 0.9


class NoRoom(Full):
    """The disk is too small for streams of the least size."""


@attrs.frozen
class DiskRoom:
    """The bytes that the streams of a server may have, and its directory on the disk that limits them."""

    size: int
    directory: Path


def fitted(declarations: Declarations, found: Mapping[str, Mapping[str, Any]], room: DiskRoom) -> Declarations:
    """Return the declarations with sizes that fit the room, and with the declared sizes as aims.

    `found` has the configurations of the streams that are there, by name. Raises NoRoom.
    """
    aims = {stream.name: int(stream.config["max_bytes"]) for stream in declarations.streams}
    present = {name: int(found[name].get("max_bytes", -1)) for name in aims.keys() & found.keys()}
    sizes = _sizes(aims, present, room)
    return attrs.evolve(
        declarations,
        streams=tuple(
            attrs.evolve(stream, config={**stream.config, "max_bytes": sizes[stream.name]}, aim=aims[stream.name])
            for stream in declarations.streams
        ),
    )


def _sizes(aims: Mapping[str, int], present: Mapping[str, int], room: DiskRoom) -> Mapping[str, int]:
    if sum(aims.values()) <= room.size:
        return aims
    least = {name: min(aim, max(present.get(name, 0), LEAST)) for name, aim in aims.items()}
    need = sum(least.values())
    if need > room.size and aims.keys() - present.keys():
        raise NoRoom(
            f"the disk of {room.directory} has room for {room.size // MIB} MiB of streams, and they need at least "
            f"{need // MIB} MiB: make room on this disk, or choose a directory on another one with --data-dir"
        )
    lacking = sum(aims.values()) - need
    share = max(0.0, room.size * _DIVIDED - need) / lacking if lacking else 0.0
    return {name: min(aim, least[name] + int((aim - least[name]) * share)) for name, aim in aims.items()}
