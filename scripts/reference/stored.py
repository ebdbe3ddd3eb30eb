"""The page of the events and tables of the services."""

from __future__ import annotations

import inspect
import re
from typing import Any

import attrs

from projections import Projection, Table

_INTRODUCTION = """# Events and tables

This page is generated from the code. Each event is part of a commit of one aggregate. `projections events` prints events, and
`GET /api/log` of the tracker gives them. [The event log](../../explanation/event-log.md) describes commits and versions.

Tables are made from events alone. Programs may read them, in SQLite or Postgres, and never write them. A column without a type is
a text. A new version of a projection may change its columns. [Read models](../../explanation/read-models.md) describes rebuilds.
"""


def text() -> str:
    """The reference of the events and tables of the services."""
    from gctd.domain import delivery, repo, schedule, task, verdict, worker  # noqa: F401, PLC0415 - they register their types
    from gctd.readmodel import MODEL as TRACKER  # noqa: PLC0415 - the services are slow to import
    from pantry.domain import barcode, category, category_name, person, product  # noqa: F401, PLC0415 - as above
    from pantry.readmodel import MODEL as LEDGER  # noqa: PLC0415

    lines = [_INTRODUCTION]
    for model in (TRACKER, LEDGER):
        lines += [f"## Events of `{model.stream}`", "", "| event | version | meaning | fields |", "|---|---|---|---|"]
        lines += [_event(*known) for known in sorted(model.registry.known()) if known[0] not in model.registry.categories]
        lines += ["", f"## Tables of `{model.name}`", "", "| table | projection | key | columns |", "|---|---|---|---|"]
        lines += [_table(projection, table) for projection in model.projections for table in projection.tables]
        lines.append("")
    return "\n".join(lines)


def _event(name: str, version: int, cls: type) -> str:
    about = " ".join(inspect.cleandoc(cls.__doc__ or "").partition("\n\n")[0].split())
    fields = ", ".join(f"`{field.name}: {_type(field.type)}`" for field in attrs.fields(cls))
    return f"| `{name}` | {version} | {about.replace('|', 'or')} | {fields} |"


def _type(annotation: Any) -> str:
    shown = annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)
    shown = re.sub(r"\b[\w.]+\.(?=\w)", "", shown)  # without modules, as in the source, also if the types are resolved
    return shown.replace(" | ", " or ")  # a bar ends the cell of a table


def _table(projection: Projection, table: Table) -> str:
    columns = ", ".join(f"`{one.name}`" + ("" if one.type == "text" else f" {one.type}") for one in table.columns)
    key = ", ".join(f"`{name}`" for name in table.key)
    return f"| `{table.name}` | `{projection.name}`, version {projection.version} | {key} | {columns} |"
