"""Commands: load an aggregate, decide, append under its guard, and decide again when another writer was first.

Commands for one aggregate wait in a queue inside the process. Commands that wait while a commit is on its way are decided in
order, each one separately, and stored together: a busy aggregate costs one write for many commands. Commands without an
idempotency key share a commit. A commit has at most one command with a key, since the broker compares one id for each message
(docs/explanation/event-log.md); several such commits are stored in a row.

Read `Commands.execute` first, then `_answer`, `decide_in_order` and `_store`.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Iterable, Sequence
from contextlib import AsyncExitStack
from datetime import UTC, datetime
from typing import Any, Generic, NamedTuple, TypeVar
from weakref import WeakValueDictionary

import attrs
import msgspec

from eventlog.commands.loading import Keys, LoadedAggregate, Loader, Outcome, Replays, check_request
from eventlog.commit import AggregateId, Commit, Context, NewCommit, NewEvent, Proposal
from eventlog.decider import Decider
from eventlog.errors import Conflict, KeyReused, KeyTaken, TooLarge, Unavailable
from eventlog.port import DEADLINE, EventLog
from eventlog.support.tracing import hex_digits


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


@attrs.define(eq=False)
class Pending:
    """A command that waits for its answer."""

    command: Any
    context: Context
    answer: asyncio.Future[Outcome[Any, Any]]
    sending: Sending = attrs.field(factory=Sending)


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

    @property
    def is_withdrawn(self) -> bool:
        """Whether the caller of one of its commands has gone before the command was sent."""
        return any(waiting.sending.is_withdrawn for waiting, _ in self.answers)

    def send(self) -> None:
        """Note that it is sent to the log from now on."""
        for waiting, _ in self.answers:
            waiting.sending.is_sent = True


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


def settle(pending: Pending, answer: Outcome[Any, Any] | Exception) -> None:
    """Answer a command, unless it is answered, or its caller has gone."""
    if pending.answer.done():
        return
    if isinstance(answer, Exception):
        pending.answer.set_exception(answer)
        pending.answer.exception()  # if its caller is gone, no other code retrieves it
    else:
        pending.answer.set_result(answer)


def settle_all(answers: Iterable[tuple[Pending, Answer]], aggregate: AggregateId, sequence: int) -> None:
    """Answer commands: `sequence` is the place of the decisions among the answers."""
    for waiting, answer in answers:
        settle(waiting, answer.at(aggregate, sequence) if isinstance(answer, Decided) else answer)


def unsettled(several: Iterable[Pending]) -> list[Pending]:
    """Return the commands that have no answer yet."""
    return [waiting for waiting in several if not waiting.answer.done()]


@attrs.define(eq=False)
class AggregateQueue:
    """The commands that wait for one aggregate, the task that serves them, the lock under which this process changes it.

    A queue that no task holds is forgotten.
    """

    lock: asyncio.Lock = attrs.field(factory=asyncio.Lock)
    waiting: list[Pending] = attrs.field(factory=list)
    task: asyncio.Task[None] | None = None


async def decide_in_order(
    replays: Replays,
    decider: Decider[Any, Any, Any],
    aggregate: AggregateId,
    taken: Sequence[Pending],
    loaded: LoadedAggregate,
    spent: int | None,
) -> Round:
    """Judge each command in order, on the state after the commands before it.

    `spent` is the sequence of a commit that bears the key of one of them.
    """
    round_ = Round(decider.fold((), loaded.state))
    uses = await replays.uses((waiting.context for waiting in taken), aggregate, loaded.sequence)
    by_key: dict[str, tuple[Pending, Answer, list[tuple[Pending, Answer]]]] = {}
    for waiting in taken:
        key = waiting.context.key
        answer: Answer
        place: list[tuple[Pending, Answer]] | None = None
        try:
            earlier = by_key.get(key) if key is not None else None
            if earlier is not None:
                check_request(waiting.context, earlier[0].context.fingerprint)
                _, answer, place = earlier
                answer = _again(answer)
            else:
                replayed = await replays.find(decider, aggregate, waiting.context, uses, spent)
                answer = replayed or _judge(decider, waiting, round_)
        except (KeyReused, Unavailable) as error:
            answer = error
        except Exception as error:  # noqa: BLE001 - a refusal in the service's own terms
            answer, round_.unguarded = error, True
        if place is None:
            place = round_.place()
        if key is not None:
            by_key.setdefault(key, (waiting, answer, place))
        place.append((waiting, answer))
    return round_


def _judge(decider: Decider[Any, Any, Any], waiting: Pending, round_: Round) -> Decided:
    events = events_of(decider, waiting.command, round_.state, waiting.context.key)
    if events:
        state = decider.fold(events, round_.state)  # before there is a draft: it may raise, and then the command has no place
        draft = round_.draft(waiting.context.key)
        draft.state = round_.state = state
        draft.events.extend(NewEvent(event, waiting.context) for event in events)
    else:
        round_.unguarded = True
    return Decided(events, round_.state)


def events_of(decider: Decider[Any, Any, Any], command: Any, state: Any, key: str | None) -> tuple[Any, ...]:
    """The events of a command: the one that confirms it if there are no others, and it has an idempotency key."""
    events = tuple(decider.decide(command, state))
    if not events and key is not None and decider.confirm is not None:
        return (decider.confirm(command, state),)
    return events


def _again(answer: Answer) -> Answer:
    """The answer for a repetition of a command."""
    if isinstance(answer, Decided):
        return answer._replace(replayed=True)
    return answer if isinstance(answer, Exception) else attrs.evolve(answer, replayed=True)


S = TypeVar("S")
C = TypeVar("C")
E = TypeVar("E")

TRIES = 10
"""How often a command is decided before its conflict is the caller's. Of two processes that are both busy with one aggregate each
loses every other time: after five tries one command in a thousand was refused, after ten tries not one of 50,000."""
MOST_IN_ONE_COMMIT = 200


@attrs.frozen
class CommandStep(Generic[S, C, E]):
    """One aggregate's part of a command that changes several together."""

    decider: Decider[S, C, E]
    id: str
    command: C

    @property
    def aggregate(self) -> AggregateId:
        """The aggregate's id."""
        return self.decider.aggregate(self.id)


class Commands:
    """Executes commands on the aggregates of one log.

    `keys` finds idempotency keys; without it commands with a key raise ValueError. `now` and `new_id` are the clock (aware,
    UTC) and the source of commit ids. `check_writable` is called before commands are decided and before their events are stored;
    it raises if no event may be stored now, and its error is their answer.
    """

    def __init__(
        self,
        log: EventLog,
        *,
        keys: Keys | None = None,
        check_writable: Callable[[], None] = lambda: None,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
        new_id: Callable[[], str] = hex_digits,
    ) -> None:
        self._log = log
        self._replays = Replays(log, keys)
        self._check_writable = check_writable
        self._now = now
        self._new_id = new_id
        self._queues: WeakValueDictionary[AggregateId, AggregateQueue] = WeakValueDictionary()
        self._loader = Loader(log, now)
        self.conflicts = 0
        """How many appends lost against another writer, since the start."""

    async def execute(
        self,
        decider: Decider[S, C, E],
        id_: str,
        command: C,
        context: Context | None = None,
        *,
        deadline: float = DEADLINE,
    ) -> Outcome[S, E]:
        """Decide a command on one aggregate and store the events, once.

        Raises the errors of `decide`, Conflict after TRIES lost ones, KeyReused, and Unavailable or OutcomeUnknown after
        `deadline` seconds. If the caller gives up before the command is sent to the log, it has no effect (`nothing_sent`).
        """
        waiting = Pending(command, context or Context(), asyncio.get_running_loop().create_future())
        self._enqueue(decider, id_, (waiting,), deadline)
        try:
            return await waiting.answer
        except asyncio.CancelledError:
            raise waiting.sending.withdraw() from None

    async def execute_in_order(
        self, decider: Decider[S, C, E], id_: str, commands: Iterable[tuple[C, Context]], *, deadline: float = DEADLINE
    ) -> Sequence[Outcome[S, E] | BaseException]:
        """Decide commands on one aggregate in order, each by itself. Return the outcome or the error of `execute` for each.

        They are stored with as few commits as possible. `deadline` is the time for each commit, in seconds. If the caller gives
        up, commands that are not decided yet have no effect.
        """
        loop = asyncio.get_running_loop()
        several = [Pending(command, context, loop.create_future()) for command, context in commands]
        self._enqueue(decider, id_, several, deadline)
        return list(await asyncio.gather(*(waiting.answer for waiting in several), return_exceptions=True))

    def _enqueue(self, decider: Decider[Any, Any, Any], id_: str, several: Iterable[Pending], deadline: float) -> None:
        aggregate = decider.aggregate(id_)
        queue = self._queue(aggregate)
        if queue.task is None:
            queue.task = asyncio.create_task(self._serve(decider, aggregate, queue, deadline))
        queue.waiting.extend(several)

    def _queue(self, aggregate: AggregateId) -> AggregateQueue:
        queue = self._queues.get(aggregate)
        if queue is None:
            queue = self._queues[aggregate] = AggregateQueue()
        return queue

    def learn(self, commit: Commit) -> None:
        """Take a commit for its aggregate's last, unless a later one is known: the next command is decided without a read.

        If it is no longer the last, the guard of the next append fails. Raises UndecodableCommit.
        """
        self._loader.learn(commit)

    async def execute_together(
        self, steps: Sequence[CommandStep[Any, Any, Any]], context: Context | None = None, *, deadline: float = DEADLINE
    ) -> Sequence[Outcome[Any, Any]]:
        """Decide a command on several aggregates and store all events or none, in one atomic batch.

        An idempotency key belongs to the first aggregate, and a repetition must name the same one. Its answer has the outcomes
        of the steps that had events. Errors as in `execute`. Raises ValueError for steps of which two are on one aggregate, and
        for a key if later steps have events and the first one has none.
        """
        if len({step.aggregate for step in steps}) < len(steps):
            raise ValueError("two steps are on one aggregate: decide them as one command")
        # A separate task: if the caller gives up, a command that was sent is still finished under the locks.
        sending = Sending()
        task = asyncio.create_task(self._together(steps, context or Context(), deadline, sending))
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            raise sending.withdraw() from None

    # One aggregate

    async def _serve(
        self, decider: Decider[Any, Any, Any], aggregate: AggregateId, queue: AggregateQueue, deadline: float
    ) -> None:
        """Answer the waiting commands until none is left, at most the commands of one commit at a time."""
        try:
            while queue.waiting:
                async with queue.lock:
                    taken, queue.waiting = queue.waiting[:MOST_IN_ONE_COMMIT], queue.waiting[MOST_IN_ONE_COMMIT:]
                    try:
                        await self._answer(decider, aggregate, unsettled(taken), deadline)
                    except Exception as error:  # noqa: BLE001 - every waiting caller gets it
                        for waiting in taken:
                            settle(waiting, error)
        finally:
            queue.task = None

    async def _answer(
        self, decider: Decider[Any, Any, Any], aggregate: AggregateId, taken: list[Pending], deadline: float
    ) -> None:
        loop = asyncio.get_running_loop()
        spent: int | None = None
        attempt, fresh = 1, False
        while taken:
            self._check_writable()
            known = None if fresh else self._loader.known(aggregate)
            loaded = known or await self._loader.load(aggregate, fresh=fresh)
            until = loop.time() + deadline
            round_ = await decide_in_order(self._replays, decider, aggregate, taken, loaded, spent)
            if round_.unguarded and not loaded.fresh:
                loaded = await self._loader.load(aggregate, fresh=True)
                round_ = await decide_in_order(self._replays, decider, aggregate, taken, loaded, spent)
            settle_all(round_.answers, aggregate, loaded.sequence)
            try:
                drafts: Sequence[Draft] = round_.drafts
                while drafts and not any(draft.is_withdrawn for draft in drafts):
                    loaded, drafts = await self._store(aggregate, loaded, drafts, deadline)
                    attempt = 1
                    if loop.time() > until:
                        break  # the keys were looked up too long ago
            except (Conflict, KeyTaken) as error:
                if attempt == TRIES:
                    raise
                attempt, fresh = attempt + 1, True
                spent = error.sequence if isinstance(error, KeyTaken) else spent
                await self._lost()
            except (TooLarge, ValueError) as error:  # a commit that cannot be a message: which command is the reason?
                taken = unsettled(taken)
                if len(taken) == 1:
                    settle(taken[0], error)
                    return
                half = len(taken) // 2
                await self._answer(decider, aggregate, taken[:half], deadline)
                await self._answer(decider, aggregate, taken[half:], deadline)
                return
            taken = unsettled(taken)

    async def _store(
        self, aggregate: AggregateId, loaded: LoadedAggregate, drafts: Sequence[Draft], deadline: float
    ) -> tuple[LoadedAggregate, Sequence[Draft]]:
        """Store commits after the one that is loaded, and answer their commands: the first one, or more of them.

        Return the aggregate with them, and the drafts that are left.
        """
        self._loader.forget(aggregate)
        self._check_writable()
        proposals = [self._proposal(aggregate, loaded, draft) for draft in drafts]
        for draft in drafts:
            draft.send()
        if len(proposals) > 1:
            stored = await self._log.append_in_row(proposals, deadline=deadline)
        else:
            stored = [await self._log.append(proposals[0], deadline=deadline)]
        for draft, appended in zip(drafts[: len(stored)], stored, strict=True):
            settle_all(draft.answers, aggregate, appended.sequence)
        last = stored[-1]
        loaded = self._loader.remember(aggregate, drafts[len(stored) - 1].state, last.sequence, last.digest)
        return loaded, drafts[len(stored) :]

    def _proposal(self, aggregate: AggregateId, loaded: LoadedAggregate, draft: Draft) -> Proposal:
        if draft.commit is None:
            draft.commit = NewCommit(id=self._new_id(), at=self._now(), events=tuple(draft.events), state=draft.state)
        return Proposal(aggregate=aggregate, expected=loaded.sequence, commit=draft.commit, prev=loaded.digest, key=draft.key)

    # Several aggregates

    async def _together(
        self, steps: Sequence[CommandStep[Any, Any, Any]], context: Context, deadline: float, sending: Sending
    ) -> Sequence[Outcome[Any, Any]]:
        # In one order for all, so that two batches never wait for each other.
        queues = [self._queue(aggregate) for aggregate in sorted(step.aggregate for step in steps)]
        async with AsyncExitStack() as stack:
            for queue in queues:
                await stack.enter_async_context(queue.lock)
            return await self._try_together(steps, context, deadline, sending)

    async def _try_together(
        self, steps: Sequence[CommandStep[Any, Any, Any]], context: Context, deadline: float, sending: Sending
    ) -> Sequence[Outcome[Any, Any]]:
        for attempt in range(1, TRIES + 1):
            self._check_writable()
            loaded = await asyncio.gather(*(self._loader.load(step.aggregate, fresh=True) for step in steps))
            first = steps[0]
            uses = await self._replays.uses((context,), first.aggregate, loaded[0].sequence)
            if earlier := await self._replays.find(first.decider, first.aggregate, context, uses):
                return await self._replays.batch(earlier)
            outcomes, proposals = self._propose(steps, loaded, context)
            if not proposals:
                return outcomes
            self._check_writable()
            if sending.is_withdrawn:
                return outcomes  # to no caller
            sending.is_sent = True
            try:
                appended = await self._log.append_together(proposals, deadline=deadline)
            except (Conflict, KeyTaken):
                if attempt == TRIES:
                    raise
                await self._lost()
                continue
            sequences = {p.aggregate: a.sequence for p, a in zip(proposals, appended, strict=True)}
            for proposal, stored in zip(proposals, appended, strict=True):
                self._loader.remember(proposal.aggregate, proposal.commit.state, stored.sequence, stored.digest)
            return [attrs.evolve(o, sequence=sequences.get(o.aggregate, o.sequence)) for o in outcomes]
        raise AssertionError("unreachable")

    def _propose(
        self, steps: Sequence[CommandStep[Any, Any, Any]], loaded: Sequence[LoadedAggregate], context: Context
    ) -> tuple[list[Outcome[Any, Any]], list[Proposal]]:
        outcomes: list[Outcome[Any, Any]] = []
        proposals: list[Proposal] = []
        at = self._now()
        for index, (step, known) in enumerate(zip(steps, loaded, strict=True)):
            before = step.decider.fold((), known.state)
            events = events_of(step.decider, step.command, before, None if index else context.key)
            state = step.decider.fold(events, before)
            outcomes.append(Outcome(aggregate=step.aggregate, sequence=known.sequence, events=events, state=state))
            if events:
                own = context
                if index:
                    cause = proposals[0].commit.id if proposals else context.causation
                    own = msgspec.structs.replace(context, key=None, fingerprint=None, causation=cause)
                commit = NewCommit(id=self._new_id(), at=at, events=tuple(NewEvent(event, own) for event in events), state=state)
                self._loader.forget(step.aggregate)
                proposals.append(
                    Proposal(aggregate=step.aggregate, expected=known.sequence, commit=commit, prev=known.digest, key=own.key)
                )
        if proposals and context.key is not None and not outcomes[0].events:
            raise ValueError(f"the first step, on {outcomes[0].aggregate.subject}, has no events for the idempotency key")
        return outcomes, proposals

    async def _lost(self) -> None:
        self.conflicts += 1
        await asyncio.sleep(random.uniform(0.001, 0.01))  # noqa: S311 - jitter, not a secret
