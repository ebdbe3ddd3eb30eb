"""A nats-py client whose messages can be taken off the wire as they are.

nats-py parses the headers of each message, makes an object of it and hands it to a task of the subscription, by way of a
queue. For a replay that is the greater part of the work. A tap gets the same bytes without it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

import nats.aio.client
import structlog
from nats.aio.msg import Msg
from nats.aio.subscription import Subscription
from nats.protocol.parser import AWAITING_CONTROL_LINE, Parser

log = structlog.get_logger(__name__)

Taker = Callable[[bytes, bytes, bytes, bytes | None], None]
"""Called with subject, reply subject (empty: none), payload and header block (None: none) of each message."""

_END = len(b"\r\n")


class _TapParser(Parser):
    """nats-py's parser, but a whole message for a tap is handed over in place: the parser moves each message three times."""

    def __init__(self, client: nats.aio.client.Client, takers: Mapping[int, Taker]) -> None:
        super().__init__(client)
        self._takers = takers
        self.heard = 0.0

    def reset(self) -> None:
        """Forget what has come."""
        super().reset()
        self._wanted = 0

    async def parse(self, data: bytes = b"") -> None:
        """Take what the server has sent; the rest of it is kept until more comes."""
        self.heard = time.monotonic()
        if self.state != AWAITING_CONTROL_LINE:
            await super().parse(data)
        elif len(self.buf) + len(data) < self._wanted:
            self.buf += data
        else:
            whole = bytes(self.buf) + data
            taken = self._take(whole)
            self.buf = bytearray(whole[taken:])
            if self.buf and not self._wanted:
                await super().parse()

    def _take(self, whole: bytes) -> int:
        """Hand over the messages for taps that it begins with, and return how many bytes they have.

        `_wanted` are the bytes of the next one, if that is for a tap too and not whole yet.
        """
        at, self._wanted = 0, 0
        while (line := whole.find(b"\r\n", at)) > 0:
            # MSG or HMSG, subject, subscription, perhaps a reply subject, with HMSG bytes of the headers, bytes in all
            words = whole[at:line].split(b" ")
            headed = words[0] == b"HMSG"
            if not headed and words[0] != b"MSG":
                break
            begin = line + _END
            try:
                taker, end = self._takers.get(int(words[2])), begin + int(words[-1])
                body = begin + int(words[-2]) if headed else begin
            except (ValueError, IndexError):
                break  # nats-py's own parser reports the fault
            if taker is None or len(words) < 4 + headed:
                break
            if end + _END > len(whole):
                self._wanted = end + _END - at
                break
            reply = words[3] if len(words) > 4 + headed else b""
            _hand_over(taker, words[1], reply, whole[body:end], whole[begin:body] if headed else None)
            at = end + _END
        return at


class TapClient(nats.aio.client.Client):
    """nats-py's client, and taps. It has to be a subclass: there is no public way to a message before it is parsed."""

    def __init__(self) -> None:
        super().__init__()
        self._takers: dict[int, Taker] = {}
        self._ps: _TapParser = _TapParser(self, self._takers)

    @property
    def heard(self) -> float:
        """When something came from the server last, by the monotonic clock."""
        return self._ps.heard

    async def tap(self, subject: str, taker: Taker) -> Subscription:
        """Subscribe; `taker` is called for each message, in order, in the reading of the connection: it has to be quick.

        End it with `untap`. Like every subscription it outlives reconnects.
        """
        subscription = await self.subscribe(subject, cb=_not_called)
        self._takers[subscription._id] = taker  # noqa: SLF001 - the number that messages bear; nats-py does not publish it
        return subscription

    def tap_once(self, taker: Taker) -> int:
        """A number for a subscription that the caller writes to the server himself, and ends: it does not outlive reconnects."""
        self._sid += 1
        self._takers[self._sid] = taker
        return self._sid

    def end_tap(self, number: int) -> None:
        """Nothing more is taken under a number of `tap_once`."""
        self._takers.pop(number, None)

    async def untap(self, subscription: Subscription) -> None:
        """Unsubscribe."""
        self._takers.pop(subscription._id, None)  # noqa: SLF001 - as in `tap`
        if not (self.is_closed or self.is_draining):
            await subscription.unsubscribe()

    async def _process_msg(self, sid: int, subject: bytes, reply: bytes, data: bytes, headers: bytes | None) -> None:
        taker = self._takers.get(sid)
        if taker is None:
            await super()._process_msg(sid, subject, reply, data, headers)  # type: ignore[arg-type]  # its annotation forgets None
            return
        _hand_over(taker, subject, reply, data, headers)


def _hand_over(taker: Taker, subject: bytes, reply: bytes, data: bytes, headers: bytes | None) -> None:
    try:
        taker(subject, reply, data, headers)
    except Exception:  # an exception would end nats-py's reading, without a message
        log.exception("a tap failed", subject=subject.decode(errors="replace"))


async def _not_called(_: Msg) -> None:
    """nats-py wants a callback; `TapClient._process_msg` is before it."""
