"""The ports of a system: chosen ones have to be free, the usual ones make way."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest

from eventlog.embedded.nats import free_port
from gctd.cli.up import ports
from gctd.cli.up.ports import PortInUse, choose

pytestmark = pytest.mark.real


@pytest.fixture
def taken() -> Iterator[int]:
    with socket.create_server(("127.0.0.1", free_port())) as server:
        yield server.getsockname()[1]


def test_a_port_in_use_is_refused_above_a_chosen_base_and_left_out_above_the_usual_one(
    taken: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(PortInUse, match=f"port {taken}: Address already in use; choose others with --port-base"):
        choose(taken - 1, services=1, gateways=1, brokers=1)
    monkeypatch.setattr(ports, "DEFAULT_BASE", taken)
    found = choose(None, services=1, gateways=1, brokers=1)
    [base] = found.gctd
    assert base > taken
    assert (base - taken) % 10 == 0
    assert (found.pantry, found.graphql, found.nats) == ((base + 1,), (base + 2,), (base + 9,))
    assert found.note == f"port {taken} is in use, so the ports begin at {base}"


def test_a_cluster_has_the_second_of_each_kind_ten_ports_above_the_first() -> None:
    found = choose(0, services=2, gateways=0, brokers=3)
    everything = [*found.gctd, *found.pantry, *found.nats, *found.routes, *found.monitoring]
    assert (len(everything), len(set(everything)), found.graphql, found.note) == (13, 13, (), None)
    base = free_port()
    assert choose(base, services=2, gateways=0, brokers=3).pantry == (base + 1, base + 11)
