"""Several writers that race for the same place in one aggregate, over and over."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from eventlog.commit import Appended, Proposal
from eventlog.errors import Conflict
from eventlog.jetstream.log import JetStreamLog
from tests.support.log.conformance import deposit


async def race(logs: Sequence[JetStreamLog], rounds: int) -> list[str]:
    """Append to aggregate `a` from each log at the same moment with the same guard, once a round. Return the accepted ids."""

    async def propose(log: JetStreamLog, expected: int) -> tuple[Proposal, Appended | None]:
        proposal = deposit("a", expected=expected)
        try:
            return proposal, await log.append(proposal)
        except Conflict:
            return proposal, None

    expected, accepted = 0, []
    for _ in range(rounds):
        results = await asyncio.gather(*(propose(log, expected) for log in logs))
        for proposal, appended in results:
            if appended is not None:
                accepted.append(proposal.commit.id)
                expected = max(expected, appended.sequence)
    return accepted
