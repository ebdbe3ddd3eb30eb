"""The log on JetStream keeps the promises of the port, on one node and on three."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from eventlog.jetstream.connection import Connection
from eventlog.port import EventLog
from tests.support.cluster.servers import Cluster
from tests.support.log.conformance import EventLogConformance
from tests.support.log.event_stream import event_stream

pytestmark = pytest.mark.real


class TestOneNode(EventLogConformance):
    @pytest_asyncio.fixture
    async def log(self, nats_url: str) -> AsyncIterator[EventLog]:
        async with Connection.open(nats_url, name="conformance") as connection:
            yield await event_stream(connection)


@pytest.mark.long
class TestThreeNodes(EventLogConformance):
    @pytest_asyncio.fixture
    async def log(self, cluster: Cluster) -> AsyncIterator[EventLog]:
        async with Connection.open(cluster.urls, name="conformance") as connection:
            yield await event_stream(connection, replicas=3)
