"""Judge commands that wait for one aggregate, each on the state after the commands before it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import attrs

from eventlog.commands.keys import check_request
from eventlog.commands.loading import LoadedAggregate
from eventlog.commands.replays import Replays
from eventlog.commands.rounds import Answer, Decided, Pending, Round
from eventlog.commit import AggregateId, NewEvent
from eventlog.decider import Decider
from eventlog.errors import KeyReused, Unavailable


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
