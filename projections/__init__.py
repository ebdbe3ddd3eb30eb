"""The read side: read models made of projections over an event log."""

from __future__ import annotations

from typing import TYPE_CHECKING

from eventlog.facade import facade

if TYPE_CHECKING:
    from projections.errors import Behind, MigrationError, ProjectionError, ProjectorStopped, StoreDamaged, StoreUnavailable
    from projections.model import (
        Change,
        Column,
        Delete,
        Projection,
        Put,
        ReadModel,
        SettingNames,
        StreamSetting,
        Table,
        timestamp_text,
    )
    from projections.queries.sql import FoundPart, JoinedList, ListPart, SortOrder, Sql
    from projections.store import Queryable, Row, Store

__all__ = [
    "Behind",
    "Change",
    "Column",
    "Delete",
    "FoundPart",
    "JoinedList",
    "ListPart",
    "MigrationError",
    "Projection",
    "ProjectionError",
    "ProjectorStopped",
    "Put",
    "Queryable",
    "ReadModel",
    "Row",
    "SettingNames",
    "SortOrder",
    "Sql",
    "Store",
    "StoreDamaged",
    "StoreUnavailable",
    "StreamSetting",
    "Table",
    "timestamp_text",
]

__getattr__ = facade(
    __name__,
    {
        "projections.model": "Change Column Delete Projection Put ReadModel SettingNames StreamSetting Table timestamp_text",
        "projections.errors": "Behind MigrationError ProjectionError ProjectorStopped StoreDamaged StoreUnavailable",
        "projections.store": "Queryable Row Store",
        "projections.queries.sql": "FoundPart JoinedList ListPart SortOrder Sql",
    },
)
