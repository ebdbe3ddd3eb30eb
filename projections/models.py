"""The read models that are installed: distributions name theirs as entry points, so this package names no service.

    [options.entry_points]
    projections.models =
        bank = bank.readmodel:MODEL

A read model that is not installed is named by its place, `package.module:NAME`. Models are imported when they are asked for: each
brings its service's domain with it.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from typing import TYPE_CHECKING

from projections.errors import ModelUnknown

if TYPE_CHECKING:
    from projections.model import ReadModel

GROUP = "projections.models"
"""The entry points of read models, under the names of the models."""
DEFAULT_GROUP = "projections.default"
"""The entry point of the model that commands take if several are installed and none is named."""

_given: list[ReadModel] = []
"""The model of the program that runs, which need not be installed: see `give`."""


@cache
def _installed() -> Mapping[str, str]:
    return unique(entry_points(group=GROUP))


def unique(entries: Sequence[EntryPoint]) -> Mapping[str, str]:
    """The places by name, in the order of the names. Raises ModelUnknown for a name that has two places."""
    places: dict[str, str] = {}
    for entry in sorted(entries, key=lambda entry: entry.name):
        if places.setdefault(entry.name, entry.value) != entry.value:
            raise ModelUnknown(
                f"two read models are installed as {entry.name!r}: {places[entry.name]} and {entry.value}; "
                "uninstall one of the distributions, or name the model by its place, module:NAME"
            )
    return places


def give(model: ReadModel) -> None:
    """Make the commands take this model, under its name and if none is named: for the program of a service."""
    _given[:] = [model]


def names() -> tuple[str, ...]:
    """The names of the installed read models, sorted."""
    return tuple(sorted({*_installed(), *(model.name for model in _given)}))


def default_name() -> str | None:
    """The model that commands take if none is named: the only one installed, else the one in DEFAULT_GROUP, else None."""
    if _given:
        return _given[0].name
    known = names()
    if len(known) == 1:
        return known[0]
    chosen = [entry.name for entry in entry_points(group=DEFAULT_GROUP) if entry.name in known]
    return chosen[0] if len(chosen) == 1 else None


def load(name: str) -> ReadModel:
    """A read model by the name that it is installed under, or by its place. Raises ModelUnknown."""
    if ":" in name:
        return at(name)
    for model in _given:
        if model.name == name:
            return model
    try:
        place = _installed()[name]
    except KeyError:
        known = ", ".join(names()) or "none"
        raise ModelUnknown(
            f"no read model {name!r} is installed (installed: {known}); module:NAME names one that is not installed"
        ) from None
    return at(place)


def at(place: str) -> ReadModel:
    """The read model at a place, `package.module:NAME`. Raises ModelUnknown."""
    module, _, attribute = place.partition(":")
    try:
        model = getattr(import_module(module), attribute)
    except (ImportError, AttributeError, ValueError) as error:
        raise ModelUnknown(f"{place} cannot be loaded: {error}; a place is module:NAME, the module on {_path()}") from error
    from projections.model import ReadModel  # noqa: PLC0415 - slow, and `--help` loads none

    if not isinstance(model, ReadModel):
        raise ModelUnknown(f"{place} is a {type(model).__name__}, not a ReadModel")
    return model


def _path() -> str:
    return ", ".join(path or "." for path in sys.path[:2]) + ", …"
