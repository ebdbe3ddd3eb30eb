"""Frames are encoded once; the ring has all that it says it has."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventlog.commit import Position
from httpkit.sse.stream import LAST_INDEX, WRITE, Frame, Ring
from tests.httpkit.shop import frame


def test_the_bytes_of_a_frame() -> None:
    assert Frame(Position(17, 2), "task", b'{"a":1}').wire == b'id: 17.2\nevent: task\ndata: {"a":1}\n\n'
    assert Frame(Position(17), "task", b"a\nb\r\nc").wire == b"id: 17\nevent: task\ndata: a\ndata: b\ndata: c\n\n"
    assert Frame(Position(17), "task", b"").wire == b"id: 17\nevent: task\ndata: \n\n"


def test_data_are_text_or_bytes_and_nothing_else() -> None:
    assert Frame(Position(17), "task", "ä\nb") == Frame(Position(17), "task", "ä\nb".encode())
    with pytest.raises(TypeError, match="is text or bytes, not dict"):
        Frame(Position(17), "task", {"a": 1})  # type: ignore[arg-type]  # the mistake


@pytest.mark.parametrize("name", ["a\nb", "a\rb"])
def test_a_name_with_a_line_break_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="no line breaks"):
        Frame(Position(1), name, b"")


positions = st.builds(Position, st.integers(1, 30), st.integers(0, 3))
batches = st.lists(st.lists(st.tuples(positions, st.sampled_from(["a", "b"]), st.binary(max_size=20)), max_size=6), max_size=12)


@given(batches, st.integers(1, 8), st.integers(60, 600), positions, st.sampled_from([None, frozenset({"a"})]))
def test_what_the_ring_gives_after_a_position_is_exactly_what_was_published_after_it(
    pushed: list[list[tuple[Position, str, bytes]]],
    max_frames: int,
    max_bytes: int,
    after: Position,
    only: frozenset[str] | None,
) -> None:
    ring = Ring(Position(0, LAST_INDEX), max_frames=max_frames, max_bytes=max_bytes)
    model: list[Frame] = []
    for batch in pushed:
        frames = [Frame(*item) for item in sorted(batch, key=lambda item: item[0])]
        for one in frames:
            if not model or one.position > model[-1].position:
                model.append(one)
        ring.extend(frames)
        assert ring.end - ring.first <= max_frames
        assert sum(one.size for one in model[ring.first : ring.end]) <= max_bytes
        assert ring.end == len(model)
        assert ring.last == (model[-1].position if model else ring.floor)
    number = ring.number_after(after)
    if number is None:
        assert any(one.position > after for one in model[: ring.first]), "it would have been all there"
        return
    parts = b""
    while number < ring.end:
        chunk = ring.chunk(number, only)
        assert chunk.first == number < chunk.next
        parts, number = parts + chunk.wire, chunk.next
    assert parts == b"".join(one.wire for one in model if one.position > after and (only is None or one.event in only))


def test_one_write_holds_many_frames_and_is_shared_by_the_clients_at_one_place() -> None:
    ring = Ring(Position(0, LAST_INDEX), max_frames=10_000, max_bytes=2**30)
    ring.extend([frame(number, data=b"x" * 100) for number in range(1, 2001)])
    chunk = ring.chunk(0, None)
    assert WRITE - 200 < len(chunk.wire) <= WRITE
    assert chunk.wire.count(b"id: ") == chunk.frames == chunk.next
    assert ring.chunk(0, None).wire is chunk.wire
    ring.extend([frame(3000)])
    assert ring.chunk(chunk.next, None).next > chunk.next


def test_a_frame_larger_than_a_write_is_sent_all_the_same() -> None:
    ring = Ring(Position(0, LAST_INDEX), max_frames=10, max_bytes=2**30)
    ring.extend([frame(1, data=b"x" * (3 * WRITE)), frame(2)])
    assert [ring.chunk(0, None).frames, ring.chunk(1, None).frames] == [1, 1]
