"""The meaning of a broker's answers, and the messages to it."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from unittest import mock

import attrs
import pytest

from eventlog.commit import Appended, Context, NewEvent
from eventlog.errors import OutcomeUnknown, TooLarge, Unavailable
from eventlog.jetstream.api import BrokerError
from eventlog.jetstream.append import Ack, AppendRefused, append_until, encode, refusal, sequences
from eventlog.jetstream.client import frame
from eventlog.jetstream.connection import Connection, Silence
from tests.support.log.conformance import REGISTRY, deposit

LIMIT = 1024**2


@pytest.mark.parametrize(
    ("code", "number", "description", "meaning"),
    [
        (503, 10008, "JetStream system temporarily unavailable", Unavailable),
        (503, 10023, "insufficient resources", AppendRefused),
        (503, 10163, "expected last sequence per subject temporarily unavailable", Unavailable),
        (500, 10009, "JetStream cluster can not handle request", Unavailable),
        (429, 10167, "too many requests", Unavailable),
        (429, 10210, "atomic publish too many inflight", Unavailable),
        (400, 10164, "wrong last sequence", Unavailable),
        (409, 10158, "duplicate message id is in process", OutcomeUnknown),
        (503, 10077, "write /data/1.blk: input/output error", OutcomeUnknown),
        (503, 10077, "maximum bytes exceeded", AppendRefused),
        (400, 10109, "invalid operation on sealed stream", AppendRefused),
        (400, 10174, "atomic publish is disabled", AppendRefused),
        (400, 10054, "message size exceeds maximum allowed", TooLarge),
    ],
)
def test_what_an_error_means(code: int, number: int, description: str, meaning: type[Exception]) -> None:
    """Unavailable: not stored, try again. AppendRefused: not stored, trying again is no use. OutcomeUnknown: it may be stored."""
    error = refusal(BrokerError(code, number, description))
    assert type(error) is meaning
    assert description in str(error)


async def test_the_silence_of_the_last_instant_does_not_hide_the_reason() -> None:
    """A record that cannot be read is the reason, even if the last try had no time for an answer."""
    reasons: list[OutcomeUnknown] = [OutcomeUnknown("one of the same batch cannot be read")]

    async def attempt(left: float) -> None:
        raise reasons.pop(0) if reasons else Silence("NATS did not answer")

    async def found(seconds: float) -> str:
        with pytest.raises(OutcomeUnknown) as caught:
            await append_until(
                mock.create_autospec(Connection, instance=True), "a", attempt, asyncio.get_running_loop().time() + seconds
            )
        return str(caught.value)

    assert "one of the same batch cannot be read" in await found(0.1)
    assert "NATS did not answer" in await found(0.1), "the only reason"


def test_the_sequences_of_a_batch_are_counted_back_from_its_last() -> None:
    assert sequences(Ack(seq=12, count=3), 3) == [Appended(10), Appended(11), Appended(12)]
    with pytest.raises(OutcomeUnknown):
        sequences(Ack(seq=12, count=2), 3)


def test_a_message_has_its_id_its_guard_and_the_first_trace() -> None:
    proposal = deposit("a", expected=7)
    events = tuple(
        NewEvent(event.data, Context(traceparent=trace)) for event in proposal.commit.events for trace in (None, "00-1", "00-2")
    )
    message = encode(REGISTRY, attrs.evolve(proposal, commit=attrs.evolve(proposal.commit, events=events)), LIMIT)
    assert message.headers.split(b"\r\n") == [
        b"Nats-Msg-Id: " + proposal.commit.id.encode(),
        b"Nats-Expected-Last-Subject-Sequence: 7",
        b"traceparent: 00-1",
        b"",
    ]


@pytest.mark.parametrize("text", ["", " a", "a\r\nNats-Rollup: all", "ä", "a\x00"])
def test_what_is_no_header_cannot_get_into_one(text: str) -> None:
    """Ids and traces come from outside: a line break in one would be another header."""
    commit = deposit("a").commit
    for bad in (
        attrs.evolve(commit, id=text),
        attrs.evolve(commit, events=(NewEvent(commit.events[0].data, Context(traceparent=text)),)),
    ):
        with pytest.raises(ValueError, match="not fit for a header"):
            encode(REGISTRY, attrs.evolve(deposit("a"), commit=bad), LIMIT)


def test_the_limit_counts_headers_too() -> None:
    """The server closes the connection for a message above it, so it is not sent."""
    proposal = deposit("a", note="x" * 1000)
    size = encode(REGISTRY, proposal, LIMIT).size
    assert encode(REGISTRY, proposal, size).size == size
    with pytest.raises(TooLarge, match="blob store"):
        encode(REGISTRY, proposal, size - 1)


def test_frames_are_as_the_protocol_has_them() -> None:
    """NATS client protocol: PUB, and HPUB with the size of the headers and of everything."""
    assert frame("a.b", "in.1", b"", b"hello") == b"PUB a.b in.1 5\r\nhello\r\n"
    assert frame("a.b", "", b"K: v\r\n", b"hello") == b"HPUB a.b  18 23\r\nNATS/1.0\r\nK: v\r\n\r\nhello\r\n"


def test_a_commit_written_today_is_read_tomorrow() -> None:
    """The bytes of a commit, as they are on the stream."""
    proposal = deposit("a", 5)
    commit = attrs.evolve(proposal.commit, id="id", at=datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC))
    assert encode(REGISTRY, attrs.evolve(proposal, commit=commit), LIMIT).data == (
        b'{"id":"id","at":"2026-01-02T03:04:05Z","events":[{"t":"deposited","d":{"amount":5,"note":""},"key":"k","correlation":"c"}],'
        b'"state":{"d":{"balance":5}}}'
    )
