"""Which read models there are. They are imported when they are asked for: each brings its service's domain with it."""

from __future__ import annotations

from importlib import import_module

from projections.model import ReadModel

_PLACES = {"tracker": "gctd.readmodel:MODEL", "pantry": "pantry.readmodel:MODEL"}


def names() -> tuple[str, ...]:
    """The names of all read models."""
    return tuple(_PLACES)


def place_of(name: str) -> str:
    """Where a read model stands, for `at`. Raises KeyError for a name that is none of `names`."""
    return _PLACES[name]


def load(name: str) -> ReadModel:
    """A read model by its name. Raises KeyError for a name that is none of `names`."""
    return at(place_of(name))


def at(place: str) -> ReadModel:
    """The read model at a place, `package.module:NAME`."""
    module, _, attribute = place.partition(":")
    model = getattr(import_module(module), attribute)
    assert isinstance(model, ReadModel)
    return model
