"""Judges recorded histories: whether the answers that clients got could come from one aggregate that does one thing at a time.

A history is linearizable if each operation can be given one moment between its call and its answer, so that the operations in
the order of these moments give the recorded answers (Herlihy and Wing, 1990). The search goes back to Wing and Gong (1993), and
remembers the situations that led nowhere, as Lowe's does (2017). Aggregates are judged one by one: a history is linearizable if
the histories of all its aggregates are.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from math import inf
from typing import Any, Generic, TypeVar

import attrs

S = TypeVar("S", bound=Hashable)


class _Unanswered:
    """The answer of an operation whose outcome is not known."""

    def __repr__(self) -> str:
        return "UNANSWERED"


UNANSWERED: Any = _Unanswered()
"""The `answer` of an operation of which the client did not learn whether it took effect."""

MOST_SITUATIONS = 200_000
"""Situations that a search looks at before it gives up."""


@attrs.frozen(kw_only=True)
class RecordedOperation:
    """One call of one client on one aggregate, and its answer.

    `called` and `answered` are moments of one clock that all clients share. If `answer` is UNANSWERED the operation may take
    effect at any moment after its call, or never, and `answered` has no meaning. A refusal that certainly changed nothing does
    not belong into a history, unless the refusal itself tells something of the state.
    """

    client: str
    aggregate: str
    call: Any
    answer: Any
    called: float
    answered: float = inf

    @property
    def known(self) -> bool:
        """Whether the client learned the outcome."""
        return self.answer is not UNANSWERED

    def __str__(self) -> str:
        end = f"{self.answered:g}" if self.known else "…"
        return f"{self.client} [{self.called:g}, {end}] {self.call} -> {self.answer}"


@attrs.frozen
class SequentialModel(Generic[S]):
    """An aggregate that does one thing at a time.

    `after(state, call, answer)` gives the states that are possible if the call is answered so: none if it cannot be. An answer
    of UNANSWERED fits every state in which the call takes effect.
    """

    initial: S
    after: Callable[[S, Any, Any], Iterable[S]]


@attrs.frozen(kw_only=True)
class LinearizabilityVerdict:
    """The result for one aggregate: `linearizable` is None if the search has given up after `situations`.

    `order` is an order that explains the answers, or the longest that was found if there is none. `stuck` are the operations
    one of which had to come next, and none can.
    """

    aggregate: str
    linearizable: bool | None
    order: Sequence[RecordedOperation]
    stuck: Sequence[RecordedOperation] = ()
    situations: int = 0

    def __str__(self) -> str:
        if self.linearizable:
            return f"{self.aggregate}: {len(self.order)} operations are linearizable"
        if self.linearizable is None:
            return f"{self.aggregate}: not decided after {self.situations:,} situations: cut the history at a quiet moment"
        lines = [f"{self.aggregate}: not linearizable. {len(self.order)} operations can be ordered, the last of them:"]
        lines += [f"    {operation}" for operation in self.order[-5:]]
        lines += ["  but one of these has to come next, and cannot:", *(f"    {operation}" for operation in self.stuck)]
        return "\n".join(lines)


def judge(
    history: Iterable[RecordedOperation], model: SequentialModel[S], *, most: int = MOST_SITUATIONS
) -> Sequence[LinearizabilityVerdict]:
    """Judge a history, aggregate by aggregate, in the order of their names.

    `most` bounds the situations that are looked at for one aggregate.
    """
    by_aggregate: dict[str, list[RecordedOperation]] = {}
    for operation in history:
        by_aggregate.setdefault(operation.aggregate, []).append(operation)
    return [_Search(name, by_aggregate[name], model, most).run() for name in sorted(by_aggregate)]


def broken(verdicts: Iterable[LinearizabilityVerdict]) -> Sequence[LinearizabilityVerdict]:
    """The verdicts that are not proof of a linearizable history: refused, or not decided."""
    return [verdict for verdict in verdicts if not verdict.linearizable]


@attrs.frozen
class _Situation(Generic[S]):
    """Of the known operations in the order of their calls all before `begin` are done, and above it the ones in `mask`.

    `mask` has a bit for each from `begin` on, `taken` one for each unanswered operation that took effect.
    """

    begin: int
    mask: int
    taken: int
    state: S


@attrs.define
class _Frame(Generic[S]):
    situation: _Situation[S]
    next: list[tuple[RecordedOperation, _Situation[S]]]
    by: RecordedOperation | None = None


class _Search(Generic[S]):
    """The search through one aggregate's history."""

    def __init__(self, name: str, operations: Sequence[RecordedOperation], model: SequentialModel[S], most: int) -> None:
        in_order = sorted(operations, key=lambda operation: operation.called)
        self._name = name
        self._known = [operation for operation in in_order if operation.known]
        self._unknown = [operation for operation in in_order if not operation.known]
        self._model = model
        self._most = most

    def run(self) -> LinearizabilityVerdict:
        first = _Situation(0, 0, 0, self._model.initial)
        path = [_Frame(first, self._choices(first))]
        seen, best, stuck = {first}, list[RecordedOperation](), self._candidates(first)[0]
        while path:
            top = path[-1]
            if top.situation.begin == len(self._known):
                return LinearizabilityVerdict(aggregate=self._name, linearizable=True, order=_order(path), situations=len(seen))
            if not top.next:
                path.pop()
                continue
            by, situation = top.next.pop()
            if situation in seen:
                continue
            if len(seen) >= self._most:
                return LinearizabilityVerdict(
                    aggregate=self._name, linearizable=None, order=best, stuck=stuck, situations=len(seen)
                )
            seen.add(situation)
            path.append(_Frame(situation, self._choices(situation), by))
            if len(path) - 1 > len(best):
                best, stuck = _order(path), self._candidates(situation)[0]
        return LinearizabilityVerdict(aggregate=self._name, linearizable=False, order=best, stuck=stuck, situations=len(seen))

    def _candidates(self, situation: _Situation[S]) -> tuple[list[RecordedOperation], list[int], float]:
        """The known operations that may come next with their places, and the moment before which a call has to be for that.

        One may come next if no other that is not done yet was answered before it was called.
        """
        found, places, end = [], [], inf
        mask, place = situation.mask, situation.begin
        while place < len(self._known) and (operation := self._known[place]).called <= end:
            if not mask & 1:
                found.append(operation)
                places.append(place)
                end = min(end, operation.answered)
            mask >>= 1
            place += 1
        return found, places, end

    def _choices(self, situation: _Situation[S]) -> list[tuple[RecordedOperation, _Situation[S]]]:
        """The possible next steps, the best last: unanswered operations are tried if nothing else explains the answers."""
        found, places, end = self._candidates(situation)
        choices: list[tuple[RecordedOperation, _Situation[S]]] = []
        for number, operation in enumerate(self._unknown):
            if operation.called <= end and not situation.taken >> number & 1:
                for state in self._model.after(situation.state, operation.call, UNANSWERED):
                    after = attrs.evolve(situation, taken=situation.taken | 1 << number, state=state)
                    choices.append((operation, after))
        for operation, place in sorted(zip(found, places, strict=True), key=lambda pair: -pair[0].answered):
            for state in self._model.after(situation.state, operation.call, operation.answer):
                begin, mask = situation.begin, situation.mask | 1 << (place - situation.begin)
                while mask & 1:
                    begin, mask = begin + 1, mask >> 1
                choices.append((operation, _Situation(begin, mask, situation.taken, state)))
        return choices


def _order(path: Iterable[_Frame[S]]) -> list[RecordedOperation]:
    return [frame.by for frame in path if frame.by is not None]
