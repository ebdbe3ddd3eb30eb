"""The simulated broker: answers what the real `eventlog.jetstream` sends, by the protocol, over links that lose and delay."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

import attrs

from tests.simulator.link import Link
from tests.simulator.stream import Latched, Record, Refusal, Stream, header
from tests.support.log.virtual_time import OUTSIDE, VirtualTimeLoop

_API = "$JS.API."
_NOT_FOUND = b"NATS/1.0 404 Message Not Found\r\n\r\n"
_END = b"NATS/1.0 204 EOB\r\n\r\n"
_SECOND = 1_000_000_000


@attrs.define(eq=False)
class _Consumer:
    """A pull consumer of one link: `next` is the sequence that it looks at next."""

    name: str
    link: Link
    next: int
    subject: str | None
    delivered: int = 0
    inbox: str = ""
    credit: int = 0
    expires: float = 0.0
    heartbeat: float = 1.0
    shown: float = 0.0
    watched: bool = False


class Broker:
    """One stream behind links.

    `lag` counts the records by which a follower may be behind, `loss` is the share of lost replies, `lost_deliveries` the share
    of lost deliveries, `busy` are the seconds by which a reply may be late.
    """

    def __init__(self, loop: VirtualTimeLoop, stream: Stream) -> None:
        self.loop = loop
        self.stream = stream
        self.links: list[Link] = []
        self.lag = 0
        self.loss = 0.0
        self.lost_deliveries = 0.0
        self.busy = 0.0
        self.trace: Callable[[str], None] = lambda text: None
        self._outside = loop.context_of(OUTSIDE)
        self._consumers: dict[str, _Consumer] = {}
        self._batches: dict[str, list[tuple[str, bytes, bytes]]] = {}

    # Links

    def connect(self, process: str) -> Link:
        """A link for a process."""
        link = Link(self.loop, process, self._handle)
        self.links.append(link)
        return link

    def drop(self, link: Link, seconds: float) -> None:
        """A link breaks, and is back after some seconds; messages on their way are lost in either direction."""
        self._batches.clear()
        self._consumers = {name: one for name, one in self._consumers.items() if one.link is not link}
        link.cut(seconds)

    def restart(self, seconds: float, *, unclean: bool) -> None:
        """The server ends and starts again; after an unclean end it scans its blocks."""
        self.stream.latched = False
        if unclean:
            self.stream.scan(self.loop.time())
        for link in self.links:
            self.drop(link, seconds * (1 + self.loop.random.random()))
        self.trace(f"broker restarted, last {len(self.stream.records)}")

    def changed(self) -> None:
        """The stream was deleted, restored or created again: its consumers are gone."""
        for consumer in self._consumers.values():
            self._push(consumer, b"NATS/1.0 409 Consumer Deleted\r\n\r\n")
        self._consumers.clear()
        self._batches.clear()

    # Messages

    def _handle(self, link: Link, subject: str, reply: str, head: bytes, data: bytes) -> None:
        if subject.startswith(_API):
            self._api(link, subject[len(_API) :], reply, data)
        else:
            self._publish(link, subject, reply, head, data)

    def _answer(self, link: Link, reply: str, data: bytes | Mapping[str, Any], head: bytes | None = None) -> None:
        if not reply:
            return
        if self.loss and self.loop.random.random() < self.loss:
            self.trace(f"lost reply to {link.process}")
            return
        body = data if isinstance(data, bytes) else json.dumps(data).encode()
        delay = 0.0003 + self.loop.random.random() * (0.001 + self.busy)
        link.deliver(delay, reply, reply, "", body, head)

    def _publish(self, link: Link, subject: str, reply: str, head: bytes, data: bytes) -> None:
        batch = header(head, b"Nats-Batch-Id: ")
        messages = [(subject, head, data)]
        if batch:
            key = f"{link.process} {batch}"
            gathered = self._batches.setdefault(key, [])
            gathered.append(messages[0])
            if not header(head, b"Nats-Batch-Commit: "):
                self._answer(link, reply, b"")
                return
            messages = self._batches.pop(key)
            if len(messages) != int(header(head, b"Nats-Batch-Sequence: ")):
                self._answer(link, reply, _error(400, 10176, "atomic publish batch is incomplete"))
                return
        try:
            stored, duplicate = self.stream.publish(messages, self.loop.time())
        except Latched:
            self.trace(f"latched, {subject}")
            return
        except Refusal as refusal:
            self.trace(f"refused {subject} {refusal.err_code}")
            self._answer(link, reply, _error(refusal.code, refusal.err_code, refusal.description))
            return
        if duplicate is not None:
            self._answer(link, reply, {"stream": self.stream.name, "seq": duplicate, "duplicate": True})
            return
        self.trace(f"stored {stored[-1].sequence} {subject} by {link.process}")
        ack: dict[str, Any] = {"stream": self.stream.name, "seq": stored[-1].sequence}
        self._answer(link, reply, {**ack, "batch": batch, "count": len(stored)} if batch else ack)
        for consumer in list(self._consumers.values()):
            self._feed(consumer)

    def _api(self, link: Link, request: str, reply: str, data: bytes) -> None:
        words, body = request.split("."), json.loads(data) if data else {}
        match words:
            case ["STREAM", "INFO", _]:
                self._answer(link, reply, self._info(body))
            case ["STREAM", "MSG", "GET", _]:
                self._answer(link, reply, _message(self._get(body)))
            case ["DIRECT", "GET", _, *subject]:
                self._direct(link, reply, body, ".".join(subject))
            case ["CONSUMER", "CREATE", _, name]:
                config = body["config"]
                found = _Consumer(name, link, config["opt_start_seq"], config.get("filter_subject"))
                self._consumers[name] = found
                pending = sum(1 for one in self.stream.records[found.next - 1 :] if found.subject in (None, one.subject))
                self._answer(link, reply, {"name": name, "num_pending": pending})
            case ["CONSUMER", "MSG", "NEXT", _, name]:
                if name in self._consumers:
                    self._ask(self._consumers[name], reply, body)
            case ["CONSUMER", "DELETE", _, name]:
                self._consumers.pop(name, None)
            case _:
                raise NotImplementedError(request)

    def _info(self, request: Mapping[str, Any]) -> Mapping[str, Any]:
        records = self.stream.records
        state: dict[str, Any] = {"messages": len(records), "first_seq": 1, "last_seq": len(records), "bytes": 0}
        if pattern := request.get("subjects_filter"):
            state["subjects"] = self.stream.counts(pattern) or None
        config = {
            "name": self.stream.name,
            "num_replicas": self.stream.replicas,
            "metadata": {"incarnation": self.stream.incarnation},
        }
        return {"config": config, "created": "2026-01-01T00:00:00Z", "state": state}

    def _get(self, body: Mapping[str, Any]) -> Record | None:
        if "last_by_subj" in body:
            return self.stream.last(body["last_by_subj"])
        if "next_by_subj" in body:
            return self.stream.next(body["seq"], body["next_by_subj"])
        return self.stream.at(body["seq"])

    def _direct(self, link: Link, reply: str, body: Mapping[str, Any], subject: str) -> None:
        """Whichever replica answers: it may be behind."""
        end = len(self.stream.records)
        if self.stream.replicas > 1 and self.lag:
            end = max(0, end - int(self.loop.random.random() * (self.lag + 1)))
        found: Record | None
        if subject:
            found = self.stream.last(subject, up_to=end)
        elif "multi_last" in body:
            found = self.stream.last(body["multi_last"][0], up_to=min(end, body["up_to_seq"]))
        elif "batch" in body:
            sequence, left = body["seq"], body["batch"]
            wanted = None if body["next_by_subj"] == ">" else body["next_by_subj"]
            while left and (one := self.stream.next(sequence, wanted, end)) is not None:
                self._answer(link, reply, one.data, _shown(one, self.stream.name))
                sequence, left = one.sequence + 1, left - 1
            self._answer(link, reply, b"", _END)
            return
        else:
            found = self.stream.at(body["seq"]) if body["seq"] <= end else None
        if found is None:
            self._answer(link, reply, b"", _NOT_FOUND)
        else:
            self._answer(link, reply, found.data, _shown(found, self.stream.name))

    # Consumers

    def _ask(self, consumer: _Consumer, inbox: str, body: Mapping[str, Any]) -> None:
        consumer.inbox = inbox
        consumer.credit += body["batch"]
        consumer.expires = self.loop.time() + body["expires"] / _SECOND
        consumer.heartbeat = body["idle_heartbeat"] / _SECOND
        self._feed(consumer)
        if not consumer.watched:
            consumer.watched = True
            self._tend(consumer)

    def _feed(self, consumer: _Consumer) -> None:
        while consumer.credit and (record := self.stream.next(consumer.next, consumer.subject)) is not None:
            consumer.next = record.sequence + 1
            consumer.delivered += 1
            consumer.credit -= 1
            consumer.shown = self.loop.time()
            pending = sum(1 for one in self.stream.records[record.sequence :] if consumer.subject in (None, one.subject))
            if self.lost_deliveries and self.loop.random.random() < self.lost_deliveries:
                continue
            ack = f"$JS.ACK.{self.stream.name}.{consumer.name}.1.{record.sequence}.{consumer.delivered}.0.{pending}"
            delay = 0.0003 + self.loop.random.random() * 0.001
            consumer.link.deliver(delay, consumer.inbox, record.subject, ack, record.data, record.head, in_order=True)

    def _push(self, consumer: _Consumer, head: bytes) -> None:
        consumer.link.deliver(0.0005, consumer.inbox, consumer.inbox, "", b"", head, in_order=True)

    def _tend(self, consumer: _Consumer) -> None:
        """Heartbeats, and the end of requests."""
        if self._consumers.get(consumer.name) is not consumer:
            return
        now = self.loop.time()
        if consumer.credit and now >= consumer.expires:
            self._push(consumer, b"NATS/1.0 408 Request Timeout\r\nNats-Pending-Messages: %d\r\n\r\n" % consumer.credit)
            consumer.credit = 0
        elif consumer.credit and now - consumer.shown >= consumer.heartbeat:
            self._push(consumer, b"NATS/1.0 100 Idle Heartbeat\r\nNats-Last-Consumer: %d\r\n\r\n" % consumer.delivered)
        self.loop.call_later(consumer.heartbeat, self._tend, consumer, context=self._outside)


def _error(code: int, err_code: int, description: str) -> Mapping[str, Any]:
    return {"error": {"code": code, "err_code": err_code, "description": description}}


def _message(record: Record | None) -> Mapping[str, Any]:
    if record is None:
        return _error(404, 10037, "no message found")
    encoded = {"hdrs": b64encode(record.head).decode(), "data": b64encode(record.data).decode()}
    return {"message": {"subject": record.subject, "seq": record.sequence, **encoded}}


def _shown(record: Record, stream: str) -> bytes:
    own = b"Nats-Stream: %b\r\nNats-Subject: %b\r\nNats-Sequence: %d\r\nNats-Time-Stamp: %b\r\n\r\n"
    at = datetime.fromtimestamp(record.at, UTC).isoformat().encode()
    return record.head[:-2] + own % (stream.encode(), record.subject.encode(), record.sequence, at)


__all__ = ["Broker"]
