"""Streams fit the disk that is there, grow later, and never shrink."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventlog.admin.declarations import Declarations, load_declarations, parse
from eventlog.admin.reconcile import LEAST, MIB, NoRoom, apply_declarations, fitted, plan_changes
from eventlog.embedded import DiskRoom
from eventlog.jetstream.api import call
from eventlog.jetstream.connection import Connection

GIB = 1024 * MIB


def sizes(declared: Declarations, room: int, found: Mapping[str, int] | None = None) -> dict[str, int]:
    """The sizes of the streams on a disk with this room; `found` are the sizes of the streams that are there."""
    there = {name: {"max_bytes": size} for name, size in (found or {}).items()}
    streams = fitted(declared, there, DiskRoom(room, Path("/data"))).streams
    return {stream.name: stream.config["max_bytes"] for stream in streams}


def test_a_disk_with_room_gives_the_declared_sizes() -> None:
    declared = load_declarations()
    assert sizes(declared, 8 * GIB) == {stream.name: stream.config["max_bytes"] for stream in declared.streams}


@given(room=st.integers(64, 9000), later=st.integers(0, 9000))
def test_streams_fit_the_room_and_never_shrink(room: int, later: int) -> None:
    declared = load_declarations()
    aims = {stream.name: stream.config["max_bytes"] for stream in declared.streams}
    first = sizes(declared, room * MIB)
    assert sum(first.values()) <= room * MIB
    assert all(LEAST <= first[name] <= aims[name] for name in aims)
    second = sizes(declared, later * MIB, first)
    assert all(first[name] <= second[name] <= aims[name] for name in aims)
    assert second == first or sum(second.values()) <= later * MIB
    assert sizes(declared, 8 * GIB, second) == aims


def test_too_small_a_disk_is_named_with_the_need_and_the_remedy() -> None:
    says = r"the disk of /data has room for 50 MiB of streams, and they need at least 64 MiB: make room.* --data-dir"
    with pytest.raises(NoRoom, match=says):
        sizes(load_declarations(), 50 * MIB)


@pytest.mark.real
async def test_a_fitted_stream_is_no_difference_and_grows_with_the_room(nats_url: str, tmp_path: Path) -> None:
    declared = parse({"streams": {"S": {"subjects": ["s"], "discard": "new", "max_bytes": "9TiB"}}})
    async with Connection.open(nats_url, name="test") as connection:
        found = []
        for room in (100, 50, 200):
            assert await apply_declarations(connection, declared, room=DiskRoom(room * MIB, tmp_path)) == []
            assert await plan_changes(connection, declared) == []
            found.append((await call(connection, "STREAM.INFO.S"))["config"]["max_bytes"] // MIB)
        assert found == [90, 90, 180]
        other = parse({"streams": {"S": {"subjects": ["s"], "discard": "new", "max_bytes": "8TiB"}}})
        assert [drift.field for drift in await plan_changes(connection, other)] == ["max_bytes"], (
            "another declaration is a difference"
        )
