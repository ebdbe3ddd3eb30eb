"""The read side: read models made of projections over an event log."""

from __future__ import annotations

from eventlog.facade import facade

TYPE_CHECKING = False  # without `typing`, which takes time to import: see `terminalkit.entry`
if TYPE_CHECKING:
    from projections.errors import (
        AggregateParked,
        ArgumentRefused,
        Behind,
        MigrationError,
        ProjectionError,
        ProjectorStopped,
        StoreDamaged,
        StoreForeign,
        StoreUnavailable,
    )
    from projections.migrations import Migrations
    from projections.model import (
        KEYS,
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
    from projections.queries import (
        MOST_KEYS,
        FoundPart,
        JoinedList,
        ListPart,
        SortOrder,
        Sql,
        count_of,
        counts_for,
        fetch_for,
        grouped,
        keyed,
        listed,
        selected,
    )
    from projections.store import Argument, Checkpoint, CheckpointOutcome, Queryable, Row, Step, Store
else:
    __getattr__ = facade(
        __name__,
        {
            "projections.errors": (
                "AggregateParked ArgumentRefused Behind MigrationError ProjectionError ProjectorStopped StoreDamaged "
                "StoreForeign StoreUnavailable"
            ),
            "projections.migrations": "Migrations",
            "projections.model": (
                "KEYS Change Column Delete Projection Put ReadModel SettingNames StreamSetting Table timestamp_text"
            ),
            "projections.queries": (
                "MOST_KEYS FoundPart JoinedList ListPart SortOrder Sql count_of counts_for fetch_for grouped keyed "
                "listed selected"
            ),
            "projections.store": "Argument Checkpoint CheckpointOutcome Queryable Row Step Store",
        },
    )

__all__ = [
    "KEYS", "MOST_KEYS", "AggregateParked", "Argument", "ArgumentRefused", "Behind", "Change", "Checkpoint", "CheckpointOutcome",
    "Column", "Delete", "FoundPart", "JoinedList", "ListPart", "MigrationError", "Migrations", "Projection", "ProjectionError",
    "ProjectorStopped", "Put", "Queryable", "ReadModel", "Row", "SettingNames", "SortOrder", "Sql", "Step", "Store",
    "StoreDamaged", "StoreForeign", "StoreUnavailable", "StreamSetting", "Table", "count_of", "counts_for", "fetch_for",
    "grouped", "keyed", "listed", "selected", "timestamp_text",
]  # fmt: skip
