"""A verdict about the ends of a log is final only if the log has not moved for a while."""

from __future__ import annotations

import pytest

from eventlog.errors import LogTruncated, Unavailable
from eventlog.jetstream.fence import StillLog


class Looks:
    """Looks at a log at chosen times."""

    def __init__(self, replicas: int = 1) -> None:
        self.now = 100.0
        self.replicas = replicas
        self.still = StillLog(lambda: self.now)

    def error(self, last: int, *, after: float = 0.0, problem: str | None = "it ends too early") -> type[Exception] | None:
        """Return the type of the error of a look that finds the last sequence, some seconds after the one before."""
        self.now += after
        info = {"state": {"first_seq": 1, "last_seq": last}, "config": {"num_replicas": self.replicas}}
        try:
            self.still.check(info, problem)
        except (LogTruncated, Unavailable) as error:
            return type(error)
        return None


@pytest.mark.parametrize(("replicas", "seconds"), [(1, 1.0), (3, 3.0)])
def test_a_log_that_stands_still_is_truncated_after_a_while(replicas: int, seconds: float) -> None:
    looks = Looks(replicas)
    assert looks.error(3) is Unavailable
    assert looks.error(3, after=seconds - 0.1) is Unavailable
    assert looks.error(3, after=0.1) is LogTruncated


def test_a_log_that_moves_is_waited_for() -> None:
    looks = Looks()
    assert {looks.error(last, after=0.9) for last in range(3, 20)} == {Unavailable}
    assert looks.error(20, after=0.9, problem=None) is None


def test_an_earlier_problem_that_is_over_does_not_count() -> None:
    looks = Looks()
    assert looks.error(3) is Unavailable
    assert looks.error(3, after=0.5, problem=None) is None
    assert looks.error(3, after=5.0) is Unavailable
