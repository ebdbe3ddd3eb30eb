"""Bugs put in on purpose: the simulator has to find each. They show that it looks at the right things."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any, Protocol
from unittest.mock import patch

import attrs

from eventlog.commit import Appended, Commit, Proposal, RecordedEvent
from eventlog.errors import Conflict, EventLogError
from eventlog.jetstream import fence, reading
from eventlog.jetstream.log import JetStreamLog
from eventlog.port import DEADLINE
from eventlog.support.chain import link
from projections.store import Checkpoint, CheckpointOutcome, Mark, Step
from projections.stores.common import judge
from projections.stores.postgres import statements
from projections.stores.postgres.store import PostgresStore


class Mutant(Protocol):
    """A context manager that puts a bug in until its end."""

    def __call__(self) -> AbstractContextManager[None]:
        """The block."""


@contextmanager
def skipped_guard() -> Iterator[None]:
    """A conflict is answered by the same commit under the guard that would have fitted, without deciding again."""
    real = JetStreamLog.append

    async def append(self: JetStreamLog, proposal: Proposal, *, deadline: float = DEADLINE) -> Appended:
        try:
            return await real(self, proposal, deadline=deadline)
        except Conflict:
            last = await self.last(proposal.aggregate, consistent=True)
            if last is None:
                raise
            again = attrs.evolve(proposal, expected=last.sequence, prev=last.digest)
            return await real(self, again, deadline=deadline)

    with patch.object(JetStreamLog, "append", append):
        yield


@contextmanager
def forgotten_fence() -> Iterator[None]:
    """The token is sent with the checkpoint, and the result of the comparison is ignored."""

    async def write_checkpoints(
        connection: Any, checkpoints: Sequence[Checkpoint], channel: str, token: int, marks: Sequence[Mark] = ()
    ) -> None:
        moved = statements._columns(checkpoints, len(attrs.fields(Checkpoint)))
        marked = statements._columns(marks, len(attrs.fields(Mark)))
        await connection.fetch(statements._MOVE, token, *moved, *marked, channel, "{}")

    with patch.object(statements, "write_checkpoints", write_checkpoints):
        yield


@contextmanager
def early_acknowledgement() -> Iterator[None]:
    """An append is answered when it is sent, with the sequence that it will probably have."""
    real = JetStreamLog.append

    async def append(self: JetStreamLog, proposal: Proposal, *, deadline: float = DEADLINE) -> Appended:
        head = await self.head()
        body = self.registry.encode(proposal.commit, (), proposal.prev)

        async def store() -> None:
            try:
                await real(self, proposal, deadline=deadline)
            except EventLogError:
                return

        background = asyncio.create_task(store())
        background.add_done_callback(lambda _: None)
        return Appended(head.last + 1, digest=link(proposal.aggregate.subject, body))

    with patch.object(JetStreamLog, "append", append):
        yield


@contextmanager
def checkpoint_outside() -> Iterator[None]:
    """Rows are committed first, and the checkpoint after them in another transaction."""

    async def advance(
        self: PostgresStore, writer: Any, steps: Sequence[Step], batch: statements.RowBatch, marks: Sequence[Mark]
    ) -> CheckpointOutcome:
        async with writer.transaction():
            outcome = judge(steps, await statements.read_checkpoints(writer, locked=True))
            if outcome is CheckpointOutcome.STORED:
                await statements.write(writer, batch)
        if outcome is CheckpointOutcome.STORED:
            election = self.election
            assert election is not None
            async with writer.transaction():
                await statements.write_checkpoints(
                    writer, [step.after for step in steps], election.channel, election.token, marks
                )
        return outcome

    with patch.object(PostgresStore, "_advance", advance):
        yield


@contextmanager
def dropped_incarnation() -> Iterator[None]:
    """Every stream of that name is taken for the same one."""

    def incarnation_of(_: Mapping[str, Any]) -> str:
        return "the same"

    with (
        patch.object(fence, "incarnation_of", incarnation_of),
        patch.object(reading, "incarnation_of", incarnation_of),
    ):
        yield


@contextmanager
def reversed_events() -> Iterator[None]:
    """The events of a commit are read in the reverse order."""

    def events(self: Commit) -> Sequence[RecordedEvent]:
        return self.registry.decode_events(self)[::-1]

    with patch.object(Commit, "events", property(events)):
        yield


MUTANTS: Mapping[str, Mutant] = {
    "reversed-events": reversed_events,
    "skipped-guard": skipped_guard,
    "forgotten-fence": forgotten_fence,
    "early-acknowledgement": early_acknowledgement,
    "checkpoint-outside": checkpoint_outside,
    "dropped-incarnation": dropped_incarnation,
}

__all__ = ["MUTANTS", "Mutant"]
