"""Resolvers of attributes in another form: thousandths as Decimal."""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter
from typing import Any

from graphql_fn.core.running.planning import SourceResolver
from graphql_fn.readmodels.binding import Resolver
from pantry.domain.quantity import text


def exact(value: int) -> str:
    """Thousandths as a Decimal."""
    return text(value).rstrip("0").rstrip(".")


def exact_of(name: str) -> Resolver:
    """An attribute in thousandths as a Decimal."""
    return converted_by(name, exact)


def converted_by(name: str, convert: Callable[[Any], Any]) -> Resolver:
    """An attribute after a conversion; None stays None."""
    get = attrgetter(name)

    def converted(source: Any) -> Any:
        value = get(source)
        return None if value is None else convert(value)

    return SourceResolver(converted)
