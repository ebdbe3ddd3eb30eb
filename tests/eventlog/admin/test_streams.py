"""Declarations of streams, and their effect on a server."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from eventlog.admin.declarations import DeclarationInvalid, Declarations, load_declarations, parse
from eventlog.admin.reconcile import Drift, apply_declarations, plan_changes
from eventlog.embedded.nats import BrokerAccess, BrokerUser, EmbeddedServer
from eventlog.errors import Unavailable
from eventlog.jetstream.api import Refused, call, incarnation_of
from eventlog.jetstream.connection import Connection

MINUTE = 60 * 1_000_000_000


@pytest_asyncio.fixture
async def connection(nats_url: str) -> AsyncIterator[Connection]:
    async with Connection.open(nats_url, name="test") as connection:
        yield connection


def declared(stream: dict[str, Any] | None = None, consumer: dict[str, Any] | None = None) -> Declarations:
    """One stream S, and one consumer c on it where fields of one are given."""
    content: dict[str, Any] = {"streams": {"S": {"subjects": ["s.*"], "discard": "new", "max_bytes": "1MiB"} | (stream or {})}}
    if consumer is not None:
        content["consumers"] = {"c": {"stream": "S", "ack_policy": "explicit"} | consumer}
    return parse(content)


async def config(connection: Connection, stream: str) -> dict[str, Any]:
    found: dict[str, Any] = (await call(connection, f"STREAM.INFO.{stream}"))["config"]
    return found


async def messages(connection: Connection, stream: str) -> int:
    count: int = (await call(connection, f"STREAM.INFO.{stream}"))["state"]["messages"]
    return count


async def test_all_that_is_declared_is_created_and_then_there_is_no_drift(connection: Connection) -> None:
    declarations = load_declarations()
    before = await plan_changes(connection, declarations)
    assert {drift.action for drift in before} == {"create"}
    assert {drift.name for drift in before} == {
        *("GCTD", "PANTRY", "PANTRY_KEYS", "crap_jobs_scan", "crap_jobs_lanes", "gctd_logs"),
        *("KV_gctd-workers", "OBJ_gctd-blobs", "crap-workers", "crap-fast"),
    }
    assert await apply_declarations(connection, declarations) == []
    assert await plan_changes(connection, declarations) == []


async def test_event_streams_are_locked_and_synced_to_nothing_but_their_limit(connection: Connection) -> None:
    await apply_declarations(connection, load_declarations())
    for name in ("GCTD", "PANTRY"):
        found = await config(connection, name)
        assert found["metadata"]["incarnation"]
        wanted = {"storage": "file", "retention": "limits", "discard": "new", "num_replicas": 1}
        wanted |= {"max_age": 0, "max_msgs": -1, "max_msgs_per_subject": -1}
        wanted |= dict.fromkeys(["deny_delete", "deny_purge", "allow_direct", "allow_atomic"], True)
        wanted |= dict.fromkeys(["allow_rollup_hdrs", "allow_msg_ttl", "sealed"], False)
        assert {field: found[field] for field in wanted} == wanted
        assert found["max_bytes"] > 0
        with pytest.raises(Refused, match="purge"):
            await call(connection, f"STREAM.PURGE.{name}")


async def test_the_queue_and_its_consumer_are_as_specified(connection: Connection) -> None:
    await apply_declarations(connection, load_declarations())
    found = await config(connection, "crap_jobs_scan")
    assert (found["retention"], found["subjects"]) == ("workqueue", ["crap.jobs.*.*"])
    consumer = (await call(connection, "CONSUMER.INFO.crap_jobs_scan.crap-workers"))["config"]
    assert (consumer["max_deliver"], consumer["ack_wait"], consumer["ack_policy"]) == (3, 10 * MINUTE, "explicit")
    assert "deliver_subject" not in consumer


async def test_an_override_replaces_one_field_and_may_be_applied_later(connection: Connection) -> None:
    await apply_declarations(connection, load_declarations())
    shorter = load_declarations(overrides={"crap-workers": {"ack_wait": "3s"}, "gctd-workers": {"ttl": "1s"}})
    assert [(drift.name, drift.field, drift.action) for drift in await plan_changes(connection, shorter)] == [
        ("KV_gctd-workers", "max_age", "update"),
        ("KV_gctd-workers", "duplicate_window", "update"),
        ("crap-workers", "ack_wait", "update"),
    ]
    assert await apply_declarations(connection, shorter) == []
    consumer = (await call(connection, "CONSUMER.INFO.crap_jobs_scan.crap-workers"))["config"]
    assert (consumer["ack_wait"], consumer["max_deliver"]) == (3_000_000_000, 3)


async def test_many_processes_may_apply_at_the_same_moment(connection: Connection, nats_url: str) -> None:
    async def one() -> list[Drift]:
        async with Connection.open(nats_url, name="test") as own:
            return await apply_declarations(own, load_declarations())

    assert await asyncio.gather(*(one() for _ in range(8))) == [[]] * 8
    incarnation = incarnation_of(await call(connection, "STREAM.INFO.GCTD"))
    await apply_declarations(connection, load_declarations())
    assert incarnation_of(await call(connection, "STREAM.INFO.GCTD")) == incarnation


@pytest.mark.parametrize(
    ("found", "wanted"),
    [
        ({}, {"subjects": ["s.*", "t.*"]}),
        ({}, {"max_bytes": "2MiB"}),
        ({}, {"max_bytes": "1KiB"}),  # refuses appends from now on, removes nothing
        ({"discard": "old"}, {"discard": "new"}),
        ({"max_age": "1h"}, {"max_age": 0}),
        ({"max_msgs_per_subject": 100}, {"max_msgs_per_subject": -1}),
        ({}, {"deny_delete": True, "deny_purge": True}),
        ({}, {"description": "more"}),
        ({}, {"allow_direct": True, "allow_atomic": True}),
        ({}, {"incarnation": True}),
    ],
)
async def test_harmless_differences_are_repaired(connection: Connection, found: dict[str, Any], wanted: dict[str, Any]) -> None:
    await apply_declarations(connection, declared(found))
    for _ in range(3):
        await connection.client.jetstream().publish("s.1", b"x" * 1000)
    assert {drift.action for drift in await plan_changes(connection, declared(wanted))} == {"update"}
    assert await apply_declarations(connection, declared(wanted)) == []
    assert await plan_changes(connection, declared(wanted)) == []
    assert await messages(connection, "S") == 3


@pytest.mark.parametrize(
    ("found", "wanted"),
    [
        ({"subjects": ["s.*", "t.*"]}, {"subjects": ["s.*"]}),
        ({}, {"max_age": "1ms"}),
        ({}, {"max_msgs_per_subject": 1}),
        ({"discard": "old"}, {"discard": "old", "max_bytes": "1KiB"}),
        ({"deny_purge": True}, {"deny_purge": False}),
        ({}, {"discard": "old"}),
        ({}, {"retention": "workqueue"}),
        ({}, {"storage": "memory"}),
    ],
)
async def test_what_could_lose_messages_or_cannot_be_changed_is_only_shown(
    connection: Connection, found: dict[str, Any], wanted: dict[str, Any]
) -> None:
    await apply_declarations(connection, declared(found))
    for _ in range(3):
        await connection.client.jetstream().publish("s.1", b"x" * 1000)
    before = await config(connection, "S")
    left = await apply_declarations(connection, declared(wanted))
    assert [drift.action for drift in left] == ["by hand"]
    assert left[0].field in str(left[0])
    assert await config(connection, "S") == before
    assert await messages(connection, "S") == 3


async def test_an_update_that_the_server_refuses_stays_as_drift(connection: Connection) -> None:
    await apply_declarations(connection, declared({}))
    three = parse(json.loads('{"streams": {"S": {"subjects": ["s.*"], "discard": "new", "max_bytes": "1MiB"}}}'), replicas=3)
    left = await apply_declarations(connection, three)
    assert [(drift.field, drift.wanted, drift.found, drift.action) for drift in left] == [("num_replicas", 3, 1, "by hand")]


@pytest.mark.real
async def test_a_user_who_may_not_change_streams_has_the_difference_left_and_learns_why_none_is_created(tmp_path: Path) -> None:
    denied = ("$JS.API.STREAM.CREATE.>", "$JS.API.STREAM.UPDATE.>")
    users = (BrokerUser(name="operator"), BrokerUser(name="service", publish_denied=denied))
    access = BrokerAccess.kept_in(tmp_path / "credentials.json", users)
    async with EmbeddedServer(tmp_path / "nats", access=access) as server:
        port = int(server.url.rpartition(":")[2])
        async with Connection.open(access.address("service", port), name="service") as service:
            with pytest.raises(Unavailable, match=r"does not permit this user to send to \$JS\.API\.STREAM\.CREATE\.S"):
                await apply_declarations(service, declared(), patience=0)
            async with Connection.open(access.address("operator", port), name="operator") as operator:
                await apply_declarations(operator, declared())
            left = await apply_declarations(service, declared({"max_bytes": "2MiB", "description": "more"}))
            assert [(drift.field, drift.found, drift.action) for drift in left] == [
                ("max_bytes", 1024**2, "by hand"),
                ("description", None, "by hand"),
            ]
            assert service.connected


async def test_consumers_are_updated_but_not_made_anew(connection: Connection) -> None:
    await apply_declarations(connection, declared({}, {"ack_wait": "10s", "max_deliver": 3, "filter_subjects": ["s.1"]}))
    await connection.client.jetstream().publish("s.1", b"taken")
    subscription = await connection.client.jetstream().pull_subscribe_bind("c", "S")
    await subscription.fetch(1, timeout=20)
    changed = declared({}, {"ack_wait": "20s", "max_deliver": 5, "filter_subjects": ["s.1", "s.2"], "deliver_policy": "new"})
    left = await apply_declarations(connection, changed)
    assert [(drift.field, drift.action) for drift in left] == [("deliver_policy", "by hand")]
    info = await call(connection, "CONSUMER.INFO.S.c")
    assert (info["config"]["ack_wait"], info["num_ack_pending"]) == (20_000_000_000, 1)


async def test_a_stream_that_the_disk_has_no_room_for_is_refused_in_words(connection: Connection) -> None:
    with pytest.raises(Unavailable, match=r"S reserves 9895604649984 bytes.*max_file_store"):
        await apply_declarations(connection, declared({"max_bytes": "9TiB"}))


async def test_no_server_is_unavailable(nats_server: EmbeddedServer) -> None:
    async with Connection.open(nats_server.url, name="test") as connection:
        await nats_server.kill()
        with pytest.raises(Unavailable):
            await asyncio.wait_for(plan_changes(connection, declared({})), 10)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ({"streams": {"S": {"subjects": ["s"]}}}, "S: max_bytes"),
        ({"streams": {"S": {"subjects": ["s"], "max_bytes": -1}}}, "S: max_bytes"),
        ({"streams": {"S": {"max_bytes": 1, "typo": 1}}}, "S: unknown fields typo"),
        ({"streams": {"S": {"max_bytes": "1 parsec"}}}, "S.max_bytes: '1 parsec'"),
        ({"consumers": {"c": {"stream": "T"}}}, "'T' is not declared"),
        ({"stream": {}}, "unknown sections: stream"),
    ],
)
def test_a_declaration_that_cannot_be_meant_is_refused_with_its_place(content: dict[str, Any], says: str) -> None:
    with pytest.raises(DeclarationInvalid, match=says):
        parse(content)


def test_an_override_of_nothing_is_refused() -> None:
    with pytest.raises(DeclarationInvalid, match="no-such-consumer"):
        load_declarations(overrides={"no-such-consumer": {"ack_wait": "1s"}})


def test_one_service_may_take_its_own_part() -> None:
    part = load_declarations(replicas=3).only("crap_jobs_scan", "gctd-blobs")
    assert [stream.name for stream in part.streams] == ["crap_jobs_scan", "OBJ_gctd-blobs"]
    assert [consumer.name for consumer in part.consumers] == ["crap-workers"]
    assert {stream.config["num_replicas"] for stream in part.streams} == {3}
    with pytest.raises(DeclarationInvalid, match="nothing"):
        load_declarations().only("nothing")


def test_all_streams_fit_the_embedded_server() -> None:
    assert sum(stream.config["max_bytes"] for stream in load_declarations().streams) <= 8 * 1024**3
