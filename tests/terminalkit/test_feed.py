"""The event stream as a client sees it: parsed as the standard says, resumed, each frame once."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import aclosing, asynccontextmanager

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gctd.client.api import Client
from terminalkit.client.service import LARGEST_FRAME, FrameParser, Opened, ReceivedFrame, Signal, StreamLost, follow
from terminalkit.client.transport import ClientError, NotAllowed, Unavailable
from tests.support.tracker.fake_api import FakeApi, problem, task_document

STREAM = (
    b"\xef\xbb\xbf: a comment\n"
    b"retry: 1500\n"
    b'id: 1\nevent: task\ndata: {\ndata:  "a": 1}\n\n'
    b"id: 2\r\nevent: repo\r\ndata: \xc3\xa9\r\n\r\n"
    b"data\rid: 3\r\r"
    b"id: 4\n\n"
    b"unknown: field\ndata:no space\n\n"
    b"id: 5\ndata: not ended"
)
FRAMES = [
    ReceivedFrame("task", '{\n "a": 1}', "1"),
    ReceivedFrame("repo", "é", "2"),
    ReceivedFrame("message", "", "3"),
    ReceivedFrame("message", "no space", None),
]


@given(st.lists(st.integers(min_value=0, max_value=len(STREAM))))
def test_frames_do_not_depend_on_where_the_bytes_are_split(cuts: list[int]) -> None:
    parser, frames, start = FrameParser(), [], 0
    for end in [*sorted(cuts), len(STREAM)]:
        frames += parser.feed(STREAM[start:end])
        start = end
    assert frames == FRAMES
    assert (parser.last_id, parser.retry) == ("4", 1.5)


@pytest.mark.parametrize("piece", [b"x" * 2**20, b"data: " + b"x" * 2**20 + b"\n"])
def test_a_frame_without_an_end_is_refused_before_it_fills_memory(piece: bytes) -> None:
    parser = FrameParser()
    for _ in range(LARGEST_FRAME // 2**20 - 1):
        assert parser.feed(piece) == []
    with pytest.raises(ClientError, match="without an end"):
        parser.feed(piece * 3)


class _Connections:
    """Gives one prepared list of chunks per connection, then ends it with an error or in order."""

    def __init__(self, *connections: Sequence[bytes | Exception]) -> None:
        self._connections = list(connections)
        self.asked: list[str | None] = []

    @asynccontextmanager
    async def __call__(self, last_id: str | None) -> AsyncGenerator[AsyncIterator[bytes], None]:
        self.asked.append(last_id)
        chunks = self._connections.pop(0)
        if chunks and isinstance(chunks[0], ClientError):
            raise chunks[0]

        async def read() -> AsyncIterator[bytes]:
            for chunk in chunks:
                if isinstance(chunk, Exception):
                    raise chunk
                yield chunk

        yield read()


async def _collect(connections: _Connections, stop: int, *, after: str | None = None) -> list[Signal]:
    signals: list[Signal] = []
    async with asyncio.timeout(60), aclosing(follow(connections, after=after, first_wait=0.001)) as feed:
        async for signal in feed:
            signals.append(signal)
            if sum(isinstance(one, ReceivedFrame) for one in signals) == stop:
                break
    return signals


async def test_a_cut_stream_is_resumed_behind_the_last_whole_frame() -> None:
    connections = _Connections(
        [b"id: 1\ndata: a\n\nid: 2\ndata: b", Unavailable("cut")],
        [Unavailable("refused")],
        [b"id: 2\ndata: b\n\n"],
        [b"id: 3\ndata: c\n\n"],
    )
    signals = await _collect(connections, 3)
    assert [one.data for one in signals if isinstance(one, ReceivedFrame)] == ["a", "b", "c"]
    assert connections.asked == [None, "1", "1", "2"]
    assert [one.resumed for one in signals if isinstance(one, Opened)] == [False, True, True]
    assert [str(one.error) for one in signals if isinstance(one, StreamLost)] == [
        "cut",
        "refused",
        "the server ended the event stream",
    ]


@pytest.mark.parametrize("ids", [("7", "8"), ("7", "7.1"), ("7.2", "7.10"), ("e-7", "e-8")])
async def test_a_frame_that_comes_again_is_dropped(ids: tuple[str, str]) -> None:
    first, second = (f"id: {id_}\ndata: {id_}\n\n".encode() for id_ in ids)
    signals = await _collect(_Connections([first], [first + second + first + second], [b"id: 99\ndata: end\n\n"]), 3)
    assert [one.data for one in signals if isinstance(one, ReceivedFrame)] == [*ids, "end"]


async def test_after_a_reset_positions_begin_anew() -> None:
    connections = _Connections([b"id: 50\ndata: a\n\n"], [b"event: reset\ndata: {}\n\nid: 3\ndata: b\n\n"])
    signals = await _collect(connections, 3)
    assert [one.data for one in signals if isinstance(one, ReceivedFrame)] == ["a", "{}", "b"]


async def test_frames_without_an_id_are_all_given() -> None:
    signals = await _collect(_Connections([b"data: a\n\ndata: a\n\n"]), 2)
    assert [one.data for one in signals if isinstance(one, ReceivedFrame)] == ["a", "a"]


async def test_heartbeats_are_not_given() -> None:
    signals = await _collect(_Connections([b"event: heartbeat\ndata: {}\n\nid: 1\ndata: a\n\n"]), 1)
    assert [one.data for one in signals if isinstance(one, ReceivedFrame)] == ["a"]


async def test_waits_grow_while_nothing_comes_and_shrink_once_something_does() -> None:
    cuts: list[Sequence[bytes | Exception]] = [[Unavailable("away")] for _ in range(6)]
    connections = _Connections(*cuts, [b"id: 1\ndata: a\n\n"], [Unavailable("away")], [b"id: 2\ndata: b\n\n"])
    waits = [one.wait for one in await _collect(connections, 2) if isinstance(one, StreamLost)]
    assert all(0.0005 * 2**power <= wait <= 0.001 * 2**power for power, wait in enumerate(waits[:6]))
    assert waits[6] <= 0.001


async def test_the_wait_that_the_server_asks_for_is_kept() -> None:
    connections = _Connections([b"retry: 40\n\n"], [Unavailable("busy", retry_after=0.02)], [b"id: 1\ndata: a\n\n"])
    waits = [one.wait for one in await _collect(connections, 1) if isinstance(one, StreamLost)]
    assert 0.02 <= waits[0] <= 0.04
    assert 0.01 <= waits[1] <= 0.02


async def test_a_refusal_that_waiting_cannot_mend_ends_the_feed() -> None:
    with pytest.raises(NotAllowed):
        await _collect(_Connections([NotAllowed("no token")]), 1)


@pytest.mark.real
async def test_a_client_that_is_cut_off_ten_times_sees_every_event_once_and_in_order() -> None:
    async with FakeApi() as api:
        api.cut_after = 3
        seen: list[str] = []
        async with Client(api.url) as client, asyncio.timeout(20), aclosing(client.feed()) as feed:
            async for signal in feed:
                if isinstance(signal, Opened) and not signal.resumed:
                    for number in range(33):
                        await api.publish("task", task_document(number))
                if isinstance(signal, ReceivedFrame):
                    seen.append(signal.id or "")
                    if len(seen) == 33:
                        break
        assert seen == [str(number) for number in range(1, 34)]
        # Events that arrived before the break may not have been read. Then they are requested once more.
        assert len(api.resumed_from) >= 11
        assert api.resumed_from[0] is None
        resumed = [int(id_ or 0) for id_ in api.resumed_from]
        assert resumed == sorted(resumed)


@pytest.mark.real
async def test_a_feed_outlives_a_restart_of_the_server() -> None:
    async with FakeApi() as api:
        ids: list[str | None] = []
        async with Client(api.url) as client, asyncio.timeout(20), aclosing(client.feed()) as feed:
            async for signal in feed:
                if isinstance(signal, Opened) and not signal.resumed:
                    await api.publish("task", task_document())
                if isinstance(signal, ReceivedFrame):
                    ids.append(signal.id)
                    if len(ids) == 2:
                        break
                    port = api.port
                    await api.stop()
                    await api.publish("task", task_document())
                    await api.start(port)
        assert ids == ["1", "2"]


@pytest.mark.real
async def test_a_feed_that_is_refused_says_why() -> None:
    async with FakeApi() as api:
        api.always["GET", "/api/sse"] = problem(503, "too many clients follow the events")
        async with Client(api.url) as client, aclosing(client.feed()) as feed:
            signal = await anext(feed)
        assert isinstance(signal, StreamLost)
        assert "too many clients" in str(signal.error)


async def test_a_client_that_is_cut_off_before_its_first_event_goes_on_from_where_it_was_greeted() -> None:
    connections = _Connections([b"retry: 1\nid: 41\n\n", Unavailable("cut")], [b"id: 42\ndata: a\n\n"])
    signals = await _collect(connections, 1)
    assert connections.asked == [None, "41"]
    assert [one.resumed for one in signals if isinstance(one, Opened)] == [False, True]


@pytest.mark.real
async def test_what_happens_while_a_consumer_reads_and_the_server_restarts_is_not_missed() -> None:
    async with FakeApi() as api, Client(api.url) as client:
        for number in range(7):
            await api.publish("task", task_document(number))
        async with asyncio.timeout(20), aclosing(client.feed()) as feed:
            assert await anext(feed) == Opened(resumed=False)
            port = api.port
            await api.stop()
            await api.publish("task", task_document())
            await api.start(port)
            ids = [signal.id async for signal in _first_frame(feed)]
        assert ids == ["8"]
        assert api.resumed_from == [None, "7"]


async def _first_frame(feed: AsyncGenerator[Signal, None]) -> AsyncGenerator[ReceivedFrame, None]:
    async for signal in feed:
        if isinstance(signal, ReceivedFrame):
            yield signal
            return
