"""Which differences of an irreplaceable stream from its declaration close writes, and which do not."""

from __future__ import annotations

from typing import Any

import pytest

from eventlog.admin.declarations import Stream, load_declarations
from eventlog.admin.reconcile import danger_of, lacking_replicas
from eventlog.jetstream.api import closed

DECLARED = {stream.name: stream for stream in load_declarations(replicas=3).irreplaceable}


def info(stream: Stream, *, last: int = 9, messages: int = 9, **config: Any) -> dict[str, Any]:
    """The answer of a server that has the stream as declared, apart from some members of its configuration."""
    metadata = {"incarnation": "x"} if stream.incarnation else {}
    state = {"messages": messages, "first_seq": last - messages + 1, "last_seq": last}
    return {"config": {"name": stream.name, **stream.config, "metadata": metadata, **config}, "state": state}


def test_the_irreplaceable_streams_are_the_logs_the_keys_and_the_objects() -> None:
    assert list(DECLARED) == ["GCTD", "PANTRY", "PANTRY_KEYS", "OBJ_gctd-blobs"]
    assert [stream.name for stream in load_declarations().lasting] == ["GCTD", "PANTRY", "OBJ_gctd-blobs"]


@pytest.mark.parametrize("name", DECLARED)
def test_a_stream_as_declared_takes_writes(name: str) -> None:
    assert danger_of(DECLARED[name], info(DECLARED[name])) is None


@pytest.mark.parametrize("name", DECLARED)
@pytest.mark.parametrize(
    "changes",
    [
        {"max_age": 10**9},
        {"max_msgs": 1000},
        {"discard": "old"},
        {"storage": "memory"},
        {"allow_direct": False},
        {"subjects": ["elsewhere.>"]},
    ],
    ids="-".join,
)
def test_a_value_by_which_records_can_go_is_a_danger_of_events_keys_and_objects(name: str, changes: dict[str, Any]) -> None:
    reason = danger_of(DECLARED[name], info(DECLARED[name], **changes))
    assert reason is not None
    assert f"the stream {name} is not as declared" in reason
    assert all(f"{field} is {value!r}, declared" in reason for field, value in changes.items())


@pytest.mark.parametrize("changes", [{"sealed": True}, {"deny_delete": False}, {"deny_purge": False}, {"retention": "interest"}])
def test_events_can_neither_be_deleted_nor_refused(changes: dict[str, Any]) -> None:
    assert danger_of(DECLARED["GCTD"], info(DECLARED["GCTD"], **changes)) is not None


@pytest.mark.parametrize(
    "changes",
    [
        {"description": "other"},
        {"max_bytes": 10},
        {"num_replicas": 1},
        {"duplicate_window": 10**12},
        {"subjects": [*DECLARED["GCTD"].config["subjects"], "gctd.newer.*"]},
        {"republish": {"src": ">", "dest": "copy.>"}},
    ],
    ids="-".join,
)
def test_what_costs_no_record_is_no_danger(changes: dict[str, Any]) -> None:
    assert danger_of(DECLARED["GCTD"], info(DECLARED["GCTD"], **changes)) is None


def test_fewer_servers_than_declared_are_noted() -> None:
    assert lacking_replicas(DECLARED["GCTD"], info(DECLARED["GCTD"])) is None
    note = lacking_replicas(DECLARED["GCTD"], info(DECLARED["GCTD"], num_replicas=1))
    assert note is not None
    assert "stream GCTD: num_replicas is 1, declared 3" in note


def test_records_that_are_gone_are_named_if_the_stream_keeps_all() -> None:
    """Deleted keys are erased persons, and deleted objects were not used."""
    events, keys = DECLARED["PANTRY"], DECLARED["PANTRY_KEYS"]
    assert "4 records of the stream PANTRY are gone, which begins at sequence 5" in str(
        danger_of(events, info(events, messages=5))
    )
    assert danger_of(keys, info(keys, messages=5)) is None


def test_a_missing_a_frozen_and_a_half_restored_stream_say_what_they_are() -> None:
    stream = DECLARED["GCTD"]
    open_config = info(stream)["config"]
    assert "the stream GCTD is missing" in str(danger_of(stream, None))
    keys = danger_of(DECLARED["PANTRY_KEYS"], None)
    remedy = "restore the copy of the keys, or `projections streams apply --new-keys` gives them up"
    assert keys == f"the stream PANTRY_KEYS is missing: {remedy}"
    assert "is being repaired" in str(danger_of(stream, info(stream, **closed(open_config))))
    half = danger_of(stream, info(stream, messages=5, **closed(open_config, copy="abc")))
    assert "is being restored from a copy, and has 5 records so far" in str(half)
