"""Public names of a package, imported when they are first used: a program that needs few of them starts sooner.

This module imports nothing that takes time: see `terminalkit.entry`.
"""

from __future__ import annotations

import sys
from importlib import import_module

TYPE_CHECKING = False  # without `typing`, which takes time to import
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any


def facade(package: str, modules: Mapping[str, str]) -> Callable[[str], Any]:
    """The `__getattr__` of a package (PEP 562); `modules` are its public names, separated by spaces, by their modules.

    The package also gets a `__dir__` with these names, which `help` and completion read.
    """
    places = {name: module for module, names in modules.items() for name in names.split()}
    own = vars(sys.modules[package])
    own["__dir__"] = lambda: sorted({*own, *places})

    def get(name: str) -> Any:
        if name not in places:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(import_module(places[name]), name)
        setattr(sys.modules[package], name, value)
        return value

    return get
