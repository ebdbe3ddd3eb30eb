"""Every version of every event and state that was ever written can still be read, and nothing changes unnoticed."""

from __future__ import annotations

from typing import Any

import attrs
import msgspec
import pytest

from eventlog import Registry, UndecodableCommit
from gctd.readmodel import model as tracker
from pantry.readmodel import model as pantry
from projections.model import ReadModel
from tests.support.log.samples import GOLDEN, registries, sample_path

KNOWN = [
    pytest.param(registry, name, version, id=f"{name}.v{number}")
    for service, registry in registries().items()
    for name, newest, _ in registry.known()
    for number in range(1, newest + 1)
    for version in [(service, number, newest)]
]


def differences(registry: Registry, name: str, version: int, stored: bytes) -> str | None:
    """Return the difference between a stored sample of the newest version and the code, if any."""
    try:
        value = registry.decode(name, version, stored)
    except UndecodableCommit as error:
        return str(error)
    written, sample = msgspec.json.decode(msgspec.json.encode(value)), msgspec.json.decode(stored)
    return None if written == sample else f"{written} is not {sample}"


@pytest.mark.parametrize(("registry", "name", "version"), KNOWN)
def test_the_code_reads_and_writes_a_stored_sample_unchanged(
    registry: Registry, name: str, version: tuple[str, int, int]
) -> None:
    service, number, newest = version
    path = sample_path(service, name, number)
    assert path.exists(), f"{path.name} is missing: python -m tests.support.log.samples writes it"
    if number == newest:
        assert differences(registry, name, number, path.read_bytes()) is None
    else:
        registry.decode(name, number, path.read_bytes())


def test_there_is_no_sample_that_no_code_knows() -> None:
    stored = {(path.parent.name, path.name) for path in GOLDEN.rglob("*.json")}
    known = {
        (service, sample_path(service, name, number).name)
        for service, registry in registries().items()
        for name, newest, _ in registry.known()
        for number in range(1, newest + 1)
    }
    assert stored == known


@pytest.mark.parametrize("model", [tracker.MODEL, pantry.MODEL], ids=["gctd", "pantry"])
def test_the_check_of_a_log_folds_the_events_of_every_aggregate(model: ReadModel) -> None:
    states = {name for name, _, _ in model.registry.known() if "." in name}
    assert states == set(model.folds)


@attrs.frozen(kw_only=True)
class Before:
    amount: int
    note: str


@attrs.frozen(kw_only=True)
class Renamed:
    quantity: int
    note: str


@attrs.frozen(kw_only=True)
class Added:
    amount: int
    note: str
    extra: str = ""


@attrs.frozen(kw_only=True)
class Retyped:
    amount: str
    note: str


@attrs.frozen(kw_only=True)
class Removed:
    amount: int


SAMPLE = msgspec.json.encode(Before(amount=1, note="n"))


def _registry(cls: Any, version: int = 1) -> Registry:
    registry = Registry()
    registry.event("Happened", version=version)(cls)
    return registry


@pytest.mark.parametrize("changed", [Renamed, Added, Retyped, Removed])
def test_a_changed_field_without_a_new_version_is_noticed(changed: Any) -> None:
    assert differences(_registry(Before), "Happened", 1, SAMPLE) is None
    assert differences(_registry(changed), "Happened", 1, SAMPLE) is not None
