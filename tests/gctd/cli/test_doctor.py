"""`gctd doctor`: a finding is about no more than the check has looked at."""

from __future__ import annotations

import pytest

from eventlog.errors import Unavailable
from gctd.cli.doctor.server import server_checks
from gctd.settings import SETTINGS
from tests.support.tracker.fake_api import FakeApi, task_document

pytestmark = pytest.mark.real


@pytest.mark.parametrize(
    ("waiting", "expected"),
    [(3, "no task waits for a capability"), (1001, "the 1000 newest tasks in the queue do not wait for a capability")],
    ids=["all looked at", "some looked at"],
)
async def test_a_task_that_was_not_looked_at_is_not_said_to_be_well(api: FakeApi, waiting: int, expected: str) -> None:
    api.tasks |= {f"task-{number}": task_document(number) for number in range(waiting)}
    settings = SETTINGS.load({"url": api.url}).values
    finding = await server_checks(settings, Unavailable("not asked"))["capabilities"]()
    assert finding is not None
    assert (finding.verdict.value, finding.detail[: len(expected)]) == ("ok", expected)
