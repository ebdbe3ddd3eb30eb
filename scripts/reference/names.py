"""The public names of the five packages, and the page of each package."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from importlib import import_module
from typing import Any, get_origin

import attrs
from house import FACES

PACKAGES = ("servicekit", "projections", "terminalkit", "httpkit", "eventlog")
"""From the top down."""
_OF_THE_LANGUAGE = ("__", "_")


@attrs.frozen(slots=False)
class Member:
    """A public name, or a member of a public class: its full name, its value, and the class that it is read from."""

    name: str
    value: Any
    owner: type | None = None

    @cached_property
    def signature(self) -> str:
        """Its name with its parameters, if it can be called."""
        found = _callable(self.value, self.owner)
        if found is None:
            return self.name
        try:
            parameters = inspect.signature(found).parameters.values()
        except (TypeError, ValueError):
            return self.name
        shown: list[str] = []
        for one in parameters:
            if one.name in {"self", "cls"}:
                continue
            if one.kind is inspect.Parameter.KEYWORD_ONLY and not any(text.startswith("*") for text in shown):
                shown.append("*")
            shown.append(_parameter(one))
        return f"{self.name}({', '.join(shown)})"

    @cached_property
    def text(self) -> str:
        """Its docstring."""
        if get_origin(self.value) is not None or not (
            inspect.isclass(self.value) or callable(self.value) or isinstance(self.value, property | classmethod | staticmethod)
        ):
            return "A value."  # a constant, an alias of a type: its name and its module say the rest
        return inspect.cleandoc(getattr(self.value, "__doc__", None) or "")


def surface() -> Iterator[Member]:
    """All public names, and the public members that their classes define in our packages."""
    for package in FACES:
        module = import_module(package)
        for name in sorted(module.__all__):
            value = getattr(module, name)
            yield Member(f"{package}.{name}", value)
            if inspect.isclass(value):
                for member, found in _members(value).items():
                    yield Member(f"{package}.{name}.{member}", found, value)


def _members(cls: type) -> Mapping[str, Any]:
    """Methods and properties that are a class's own, or of a base class in our packages."""
    ours = [base for base in reversed(cls.__mro__) if base.__module__.partition(".")[0] in PACKAGES]
    found = {name: value for base in ours for name, value in vars(base).items() if not name.startswith(_OF_THE_LANGUAGE)}
    return {name: value for name, value in sorted(found.items()) if _is_code(value)}


def _is_code(value: Any) -> bool:
    return isinstance(value, property | cached_property | classmethod | staticmethod) or inspect.isfunction(value)


def _callable(value: Any, owner: type | None) -> Callable[..., Any] | None:
    if isinstance(value, property | cached_property):
        return None
    if isinstance(value, classmethod | staticmethod):
        return value.__func__
    if inspect.isclass(value) and (issubclass(value, BaseException) or getattr(value, "_is_protocol", False)):
        return None
    return value if callable(value) and (owner is not None or inspect.isfunction(value) or inspect.isclass(value)) else None


def _parameter(one: inspect.Parameter) -> str:
    kinds: dict[Any, str] = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}
    prefix = kinds.get(one.kind, "")
    return f"{prefix}{one.name}{'' if one.default is inspect.Parameter.empty else '=...'}"


def text(package: str) -> str:
    """Return the page of a package."""
    module = import_module(package)
    lines = [f"# `{package}`", "", inspect.cleandoc(module.__doc__ or "").partition("\n\n")[0], ""]
    for member in surface():
        if member.name.partition(".")[0] != package:
            continue
        depth = "##" if member.owner is None else "###"
        lines += [f"{depth} `{member.signature.removeprefix(f'{package}.')}`", "", _shown(member.text), ""]
    return "\n".join(lines).rstrip() + "\n"


def _shown(text: str) -> str:
    """A docstring as Markdown: an indented example is code in both."""
    return text.replace("\t", "    ")
