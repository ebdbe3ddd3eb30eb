"""The attempts at a task in the read model: each stage with its length."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import attrs
import msgspec

from gctd.domain.task.attempts import Attempt
from gctd.domain.task.events import AttemptLog, Progress
from projections import timestamp_text

_decoder = msgspec.json.Decoder(tuple[Attempt, ...])


@attrs.frozen(kw_only=True)
class StageView:
    """A stage of an attempt; `duration_ms` is None while it lasts, `progress` if there is nothing to count."""

    stage: str
    started_at: str
    duration_ms: int | None
    progress: Progress | None


@attrs.frozen(kw_only=True)
class AttemptView:
    """An attempt. `ended_at` and `outcome` are None while it lasts, `log` until its log is in the blob store."""

    number: int
    worker: str
    started_at: str
    ended_at: str | None
    outcome: str | None
    reason: str
    stages: tuple[StageView, ...]
    log: AttemptLog | None

    @classmethod
    def of(cls, attempt: Attempt) -> AttemptView:
        """The attempt that a task's state has."""
        until = [*(stage.at for stage in attempt.stages), attempt.ended_at][1:]
        return cls(
            number=attempt.number,
            worker=attempt.worker,
            started_at=timestamp_text(attempt.started_at),
            ended_at=timestamp_text(attempt.ended_at) if attempt.ended_at else None,
            outcome=attempt.outcome,
            reason=attempt.reason,
            stages=tuple(
                StageView(
                    stage=one.stage,
                    started_at=timestamp_text(one.at),
                    duration_ms=_milliseconds(one.at, end),
                    progress=one.progress,
                )
                for one, end in zip(attempt.stages, until, strict=True)
            ),
            log=attempt.log,
        )


def attempts_of(text: str) -> Sequence[AttemptView]:
    """The attempts in the column of that name of a row of `tasks`."""
    return [AttemptView.of(attempt) for attempt in _decoder.decode(text)]


def progress_of(text: str) -> Progress | None:
    """Return how far the tests of the last attempt are, from the column `attempts`; None if it is unknown."""
    attempts = _decoder.decode(text)
    return attempts[-1].stages[-1].progress if attempts and attempts[-1].stages else None


def _milliseconds(since: datetime, until: datetime | None) -> int | None:
    # The end of a lost attempt is by another clock than its stages.
    return None if until is None else max(0, round((until - since).total_seconds() * 1000))
