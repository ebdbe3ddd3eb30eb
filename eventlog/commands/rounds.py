"""One pass over the commands that wait for an aggregate: the commits to store, and the answers of the commands."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any, Generic, NamedTuple, TypeVar

import attrs

from eventlog.commit import AggregateId, Context, NewCommit, NewEvent

S = TypeVar("S")
E = TypeVar("E")


@attrs.frozen(kw_only=True)
class Outcome(Generic[S, E]):
    """Result of a command: its events (none: there was nothing to do), the state after them, the aggregate's sequence.

    `replayed`: the command's idempotency key had taken effect before. Events, state and sequence are then from that time.
    """

    aggregate: AggregateId
    sequence: int
    events: tuple[E, ...]
    state: S
    replayed: bool = False


@attrs.define(eq=False)
class Pending:
    """A command that waits for its answer."""

    command: Any
    context: Context
    answer: asyncio.Future[Outcome[Any, Any]]


class Decided(NamedTuple):
    """A decision: the events, and the state after them. It has no sequence yet."""

    events: tuple[Any, ...]
    state: Any
    replayed: bool = False

    def at(self, aggregate: AggregateId, sequence: int) -> Outcome[Any, Any]:
        """The outcome, once the aggregate is stored with that sequence."""
        return Outcome(aggregate=aggregate, sequence=sequence, events=self.events, state=self.state, replayed=self.replayed)


Answer = Outcome[Any, Any] | Decided | Exception


@attrs.define(eq=False)
class Draft:
    """A commit to be stored: the events of some commands, at most one of which has a key, and the state after them.

    `answers` hold once it is stored, also refusals that were decided on its state.
    """

    events: list[NewEvent] = attrs.field(factory=list)
    answers: list[tuple[Pending, Answer]] = attrs.field(factory=list)
    state: Any = None
    key: str | None = None
    commit: NewCommit | None = None
    """Made once: a commit that is proposed again has the same id."""


@attrs.define(eq=False)
class Round:
    """One pass over waiting commands: their commits, in order, and the answers that hold without a commit."""

    state: Any
    drafts: list[Draft] = attrs.field(factory=list)
    answers: list[tuple[Pending, Answer]] = attrs.field(factory=list)
    unguarded: bool = False
    """Whether something was answered on the state read alone: a refusal, or nothing to do."""

    def draft(self, key: str | None) -> Draft:
        """The commit that a command with that key (None: without one) belongs to."""
        last = self.drafts[-1] if self.drafts else None
        if last is None or (key is not None and last.key is not None):
            last = Draft()
            self.drafts.append(last)
        last.key = last.key or key
        return last

    def place(self) -> list[tuple[Pending, Answer]]:
        """The answers that hold once the present state is stored."""
        return self.drafts[-1].answers if self.drafts else self.answers


def settle(waiting: Pending, answer: Outcome[Any, Any] | Exception) -> None:
    """Answer a command, unless it is answered, or its caller has gone."""
    if waiting.answer.done():
        return
    if isinstance(answer, Exception):
        waiting.answer.set_exception(answer)
        waiting.answer.exception()  # if its caller is gone, no other code retrieves it
    else:
        waiting.answer.set_result(answer)


def settle_all(answers: Iterable[tuple[Pending, Answer]], aggregate: AggregateId, sequence: int) -> None:
    """Answer commands: `sequence` is the place of the decisions among the answers."""
    for waiting, answer in answers:
        settle(waiting, answer.at(aggregate, sequence) if isinstance(answer, Decided) else answer)


def unsettled(several: Iterable[Pending]) -> list[Pending]:
    """Return the commands that have no answer yet."""
    return [waiting for waiting in several if not waiting.answer.done()]
