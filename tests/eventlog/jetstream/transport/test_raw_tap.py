"""A tap gets its messages as they were sent, with any division into pieces and any other messages in between."""

from __future__ import annotations

from collections.abc import Sequence

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st
from nats.errors import ProtocolError

from eventlog.jetstream.client import TapClient

TAPPED, OTHER = (1, 2), 9


@attrs.frozen
class Sent:
    """A message, as the server sends it."""

    number: int
    subject: bytes
    reply: bytes
    data: bytes
    headers: bytes | None

    @property
    def wire(self) -> bytes:
        """Its bytes (NATS client protocol)."""
        words = [self.subject, b"%d" % self.number, *([self.reply] if self.reply else [])]
        if self.headers is None:
            return b"MSG %b %d\r\n%b\r\n" % (b" ".join(words), len(self.data), self.data)
        size = len(self.headers)
        return b"HMSG %b %d %d\r\n%b%b\r\n" % (b" ".join(words), size, size + len(self.data), self.headers, self.data)


class Recording(TapClient):
    """A client that is not connected. It notes messages without a tap among the rest."""

    def __init__(self) -> None:
        super().__init__()
        self.taken: list[Sent] = []
        for number in TAPPED:
            assert self.tap_once(lambda *parts, number=number: self.taken.append(Sent(number, *parts))) == number

    async def _process_msg(self, sid: int, subject: bytes, reply: bytes, data: bytes, headers: bytes | None) -> None:
        if sid in TAPPED:
            await super()._process_msg(sid, subject, reply, data, headers)
        else:
            self.taken.append(Sent(sid, subject, reply, data, headers))

    async def receive(self, stream: bytes, sizes: Sequence[int]) -> None:
        """Bytes come in pieces of these sizes, one after the other and again from the first."""
        at, turn = 0, 0
        while at < len(stream):
            size = sizes[turn % len(sizes)]
            await self._ps.parse(stream[at : at + size])
            at, turn = at + size, turn + 1


subjects = st.sampled_from([b"a", b"pantry.product.1", b"$JS.ACK.S.c.1.2.3.4.0", b"12"])
tricky = st.sampled_from([b"\r\nMSG a 1 3\r\nabc\r\n", b"MSG a 1 1\r\n", b"\r\n", b"PING\r\n", b"x" * 3000])
payloads = st.one_of(st.binary(max_size=40), tricky)
headers = st.one_of(st.none(), st.just(b"NATS/1.0\r\n\r\n"), st.just(b"NATS/1.0 503\r\nA: b c\r\n\r\n"))
messages = st.builds(Sent, st.sampled_from([*TAPPED, OTHER]), subjects, st.one_of(st.just(b""), subjects), payloads, headers)
between = st.sampled_from([b"", b"", b"+OK\r\n"])


@given(st.lists(st.tuples(messages, between), max_size=12), st.lists(st.integers(1, 4000), min_size=1, max_size=5))
async def test_what_is_sent_arrives_in_whatever_pieces(sent: list[tuple[Sent, bytes]], sizes: list[int]) -> None:
    client = Recording()
    await client.receive(b"".join(message.wire + other for message, other in sent), sizes)
    assert client.taken == [message for message, _ in sent]


@given(st.lists(messages, min_size=1, max_size=4))
async def test_every_single_byte_may_come_by_itself(sent: list[Sent]) -> None:
    client = Recording()
    await client.receive(b"".join(message.wire for message in sent), [1])
    assert client.taken == sent


async def test_a_large_message_waits_for_its_end() -> None:
    large = Sent(1, b"a", b"", b"x" * 3_000_000, None)
    client = Recording()
    await client.receive(large.wire[:-1], [32_768])
    assert client.taken == []
    await client.receive(large.wire[-1:], [1])
    assert client.taken == [large]


async def test_a_lost_connection_forgets_what_was_half_there() -> None:
    client, whole = Recording(), Sent(1, b"a", b"", b"abc", None)
    await client.receive(whole.wire[:-3], [100])
    client._ps.reset()
    await client.receive(whole.wire, [100])
    assert client.taken == [whole]


async def test_a_tap_that_fails_does_not_end_the_reading() -> None:
    client = Recording()

    def fail(*_: object) -> None:
        raise ValueError("no")

    number = client.tap_once(fail)
    await client.receive(Sent(number, b"a", b"", b"1", None).wire + Sent(1, b"a", b"", b"2", None).wire, [1000])
    assert [message.data for message in client.taken] == [b"2"]


async def test_what_comes_for_a_tap_that_has_ended_is_left_alone() -> None:
    client = Recording()
    client.end_tap(2)
    await client.receive(Sent(2, b"a", b"", b"1", None).wire + Sent(1, b"a", b"", b"2", None).wire, [1000])
    assert [message.data for message in client.taken] == [b"2"]


@pytest.mark.parametrize("line", [b"MSG a 1\r\n", b"MSG a one 1\r\n", b"HMSG a 1 x 3\r\nabc\r\n", b"MSG\r\n", b"what\r\n"])
async def test_what_is_no_message_is_an_error_of_the_protocol(line: bytes) -> None:
    """nats-py then reconnects."""
    client = Recording()
    with pytest.raises(ProtocolError):
        await client.receive(Sent(1, b"a", b"", b"2", None).wire + line, [1000])
    assert [message.data for message in client.taken] == [b"2"]
