"""Golden samples: a stored JSON text of every version of every event and state that was ever written.

`python -m tests.support.log.samples` writes missing samples and never rewrites an existing one. A test compares the code with the
samples, so it finds a changed field without a new version and an upcaster.
"""

from __future__ import annotations

import enum
import types
import typing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import attrs
import msgspec

from eventlog import Registry
from tests.support import ROOT

GOLDEN = ROOT / "tests" / "support" / "log" / "golden"


def registries() -> dict[str, Registry]:
    """The registry of each service that has one."""
    from gctd.domain import delivery, repo, schedule, task, verdict, worker  # noqa: F401, PLC0415 - importing them registers their types
    from gctd.domain.registry import REGISTRY  # noqa: PLC0415
    from gctd.readmodel import MODEL as TRACKER  # noqa: PLC0415 - as above: the types of tokens
    from pantry.domain import barcode, category, category_name, person, product  # noqa: F401, PLC0415 - as above
    from pantry.domain.registry import REGISTRY as PANTRY  # noqa: PLC0415
    from pantry.readmodel import MODEL as LEDGER  # noqa: PLC0415

    assert (TRACKER.registry, LEDGER.registry) == (REGISTRY, PANTRY)
    return {"gctd": REGISTRY, "pantry": PANTRY}


def sample_path(service: str, name: str, version: int) -> Path:
    """Where the sample of a type's version is kept."""
    return GOLDEN / service / f"{name}.v{version}.json"


def sample(kind: Any) -> Any:
    """A value of a type, with every optional part there."""
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin in (typing.Union, types.UnionType):
        return sample(next(argument for argument in arguments if argument is not type(None)))
    if origin is tuple:
        return (sample(arguments[0]),)
    if origin is dict:
        return {"key": sample(arguments[1])}
    if isinstance(kind, type) and issubclass(kind, enum.Enum):
        return next(iter(kind))
    if attrs.has(kind):
        attrs.resolve_types(kind)
        return kind(**{field.name: sample(field.type) for field in attrs.fields(kind)})
    return {str: "text", int: 7, float: 1.5, bool: True, datetime: datetime(2026, 11, 20, 12, tzinfo=UTC)}[kind]


def write_missing() -> list[Path]:
    """Write the samples of the newest versions that have none; give their paths."""
    written = []
    for service, registry in registries().items():
        for name, version, cls in registry.known():
            path = sample_path(service, name, version)
            if not path.exists():
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(msgspec.json.format(msgspec.json.encode(sample(cls)), indent=2) + b"\n")
                written.append(path)
    return written


if __name__ == "__main__":
    for written_path in write_missing():
        print(written_path.relative_to(GOLDEN.parent.parent))
