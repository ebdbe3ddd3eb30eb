"""`projections repair` on a cluster: a record that one server cannot read is whole on the others."""

from __future__ import annotations

from pathlib import Path

import attrs
import pytest

from eventlog import Commands
from eventlog.admin.declarations import Declarations
from eventlog.admin.diagnosis import Replicas, Witness, each_leads
from eventlog.admin.reconcile import apply_declarations
from eventlog.admin.repair import StreamRepair
from eventlog.admin.scrub import LogScrubber
from eventlog.jetstream.api import MessageReader
from eventlog.jetstream.connection import Connection
from eventlog.jetstream.log import JetStreamLog
from tests.support.cluster.servers import SIZE, Cluster
from tests.support.log.damage import flip
from tests.support.readside.ledger import ACCOUNT, REGISTRY, Booked, Opened
from tests.support.readside.projecting import STREAM

pytestmark = [pytest.mark.real, pytest.mark.long]

REPLICATED = attrs.evolve(STREAM, config={**STREAM.config, "num_replicas": SIZE})


async def found_in_a_service(scrubber: LogScrubber) -> str | None:
    """The finding of passes of which each reads the files of any server."""
    for _ in range(200):
        if (done := await scrubber.scrub()).count:
            return done.found[0].problem
    return None


async def test_a_record_that_one_server_cannot_read_is_restored_from_the_others(tmp_path: Path) -> None:
    """Even if that server does not lead: each one leads in turn while the damage is looked for."""
    async with Cluster.running(tmp_path) as cluster, Connection.open(cluster.urls, name="test") as connection:
        await apply_declarations(connection, Declarations((REPLICATED,)))
        log = JetStreamLog(connection, STREAM.name, REGISTRY)
        commands = Commands(log)
        await commands.execute(ACCOUNT, "a", Opened("ann"))
        for amount in range(5):
            await commands.execute(ACCOUNT, "a", Booked(7770000 + amount))
        before = await log.head()
        leader = await cluster.leader(STREAM.name)
        follower = next(node for node in cluster.nodes if node is not leader)
        await follower.stop()
        flip(follower.data_dir, STREAM.name, b"7770002")
        await follower.start()
        await cluster.ready()
        reader = MessageReader(connection, STREAM.name)
        found, in_service = {}, []
        async for name in each_leads(connection, STREAM.name):
            done = await LogScrubber(reader, REGISTRY, log.head, from_leader=True).scrub()
            found[name] = [damage.sequence for damage in done.found]
            if follower.name in found and name != follower.name:
                # nats-server does not let a restarted server answer such reads until there is another election.
                in_service.append(await found_in_a_service(LogScrubber(reader, REGISTRY, log.head)))
        assert found == {node.name: [4] if node is follower else [] for node in cluster.nodes}
        assert set(in_service) == {"a server cannot read the record, and the leader can"}
        work = StreamRepair(connection, STREAM.name, REGISTRY, sources=[Replicas(reader)], witness=Witness())
        repaired = await work.apply(tmp_path / "kept")
        assert [(one.fault.sequence, one.source) for one in repaired.remedies] == [(4, "a replica")]
        assert repaired.same
        assert await log.head() == before
        assert (await work.plan()).remedies == []
        assert (await LogScrubber(reader, REGISTRY, log.head).scrub()).count == 0
        assert (await commands.execute(ACCOUNT, "a", Booked(1))).state.entries == 6
