"""Commands whose callers give up: an unsent command has no effect, a sent one may have one."""

from __future__ import annotations

import asyncio

import attrs


@attrs.define(eq=False)
class Sending:
    """Whether a command was sent to the log, and whether its caller has gone. One excludes a later change of the other."""

    is_sent: bool = False
    is_withdrawn: bool = False

    def withdraw(self) -> asyncio.CancelledError:
        """Take the command back if it was not sent. Return the error for its caller."""
        if self.is_sent:
            return asyncio.CancelledError()
        self.is_withdrawn = True
        return asyncio.CancelledError(_NOTHING_SENT)


_NOTHING_SENT = "the command was not sent to the log"


def nothing_sent(error: TimeoutError) -> bool:
    """Return whether a command that took too long has no effect, now and later. `error`: of the time limit around it."""
    cancelled = error.__cause__ or error.__context__  # early versions of Python 3.11 give no cause
    return isinstance(cancelled, asyncio.CancelledError) and _NOTHING_SENT in cancelled.args
