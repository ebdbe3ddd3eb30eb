"""Upgrade of a read model to a new version of the program: the old tables serve until the new ones are ready.

The new program makes the new tables when it starts, or before, by its `projections rebuild --no-switch`. If processes of the old
one still run on a shared database, they continue with the old tables, and the new program waits for them.
"""

from __future__ import annotations

import asyncio
from enum import Enum

import structlog

from eventlog import EventLog, EventLogError, Unavailable
from projections.errors import CopyRefused, NotLeading, ProjectionError, StoreDamaged, StoreInUse, StoreUnavailable
from projections.migrations import migrate, migrations_of, table_problem
from projections.model import ReadModel
from projections.projector.projector import Projector
from projections.projector.writer import pauses
from projections.rebuild.copies import Copies, CopyPart, Switching
from projections.rebuild.rebuild import check_fits, check_ready, confirm, fill, switch
from projections.rebuild.verify import Run
from projections.store import Reader, Store

log = structlog.get_logger(__name__)

WITHHELD = "the tables belong to another version of the program, and new ones are being made"
"""The reason why tables of another version are not queried."""
_LOOK_EVERY = 0.2
"""Seconds between two looks whether this process may write now."""


class Upgrade(Enum):
    """The action for the tables that a program finds."""

    NONE = "none"
    """The tables match, or there are none, or an operator has taken migrations back: migrations are applied to these tables."""
    ROWS = "rows"
    """Only rows differ: they are shown until there are new ones."""
    TABLES = "tables"
    """The tables themselves differ: they are not queried until there are new ones."""


async def upgrade_of(store: Reader, copies: Copies | None, model: ReadModel) -> Upgrade:
    """Return the action for the tables of a read model. Raises StoreUnavailable, StoreDamaged."""
    checkpoints = await store.checkpoints()
    filled = [projection.name in checkpoints for projection in model.projections]
    if copies is None or not any(filled) or await _fits(store, model):
        return Upgrade.NONE
    schema, ready = await store.schema(), await _is_ready(copies, model)
    if schema.version == _wanted(store, model):
        if await _declared_otherwise(store, model):
            return Upgrade.TABLES
        return Upgrade.ROWS if ready or all(filled) else Upgrade.NONE
    older = schema.version < _wanted(store, model) and not schema.dirty and not schema.taken_back
    return Upgrade.TABLES if ready or older else Upgrade.NONE


def _wanted(store: Reader, model: ReadModel) -> int:
    return len(migrations_of(model, store.dialect))


async def _fits(store: Reader, model: ReadModel) -> bool:
    checkpoints = await store.checkpoints()
    same_rows = all(checkpoints[p.name].version == p.version for p in model.projections if p.name in checkpoints)
    same_schema = (await store.schema()).version == _wanted(store, model)
    return same_rows and same_schema and not await _declared_otherwise(store, model)


async def _declared_otherwise(store: Reader, model: ReadModel) -> bool:
    """Whether tables without migrations are from another version: the number of the schema cannot tell."""
    return model.migrations is None and await table_problem(store, model) is not None


async def _is_ready(copies: Copies, model: ReadModel) -> bool:
    """Whether a copy is there that was made for this program, and verified."""
    if CopyPart.NEW not in await copies.there():
        return False
    copy = copies.reader(CopyPart.NEW)
    try:
        await copy.open()
        await check_ready(copy, model)
    except ProjectionError as error:
        log.debug("the copy of the tables cannot be taken", reason=str(error))
        return False
    finally:
        await copy.close()
    return True


class SchemaUpgrade:
    """The change from the tables of another version of the program to the tables of this one; `run` makes it."""

    def __init__(self, store: Store, copies: Copies | None, event_log: EventLog, model: ReadModel) -> None:
        self._store = store
        self._copies = copies
        self._log = event_log
        self._model = model
        self._does = ""
        self._replay: tuple[Projector, int] | None = None

    def reason(self) -> str | None:
        """Why this program's own tables are not shown yet, and how far they are; None if they are, or `run` has not begun."""
        if self._replay is None:
            return self._does or None
        projector, until = self._replay
        position = projector.status().position
        return f"{self._does}: {position} events applied, {max(0, until - position)} left"

    async def run(self, projector: Projector) -> None:
        """Take the existing copy, or make one, and switch to it. Do nothing if the tables match.

        `projector` belongs to the live tables, and does not run. The old tables are kept for `rollback`, by the old program. If
        the old program still runs and leads, this waits for it, for another process that makes the copy, and for servers that
        are away. If no copy can be made, the tables are migrated in place and refilled. Raises ProjectionError, which `reason`
        reports from then on.
        """
        waits, beside = pauses(), True
        while True:
            try:
                await (self._change(projector) if beside else self._turn())
                await migrate(self._store, self._model)
            except (StoreUnavailable, Unavailable) as error:
                self._say(f"making the new tables waits: {error}")
                await asyncio.sleep(next(waits))
            except (ProjectionError, EventLogError) as error:
                self._say(f"the new tables cannot be made: {error}")
                if not beside:
                    raise
                beside = False
            else:
                self._store.withheld = None
                self._say("")
                return

    async def _change(self, projector: Projector) -> None:
        store, copies, model = self._store, self._copies, self._model
        while isinstance(store, Switching) and copies is not None:
            if await upgrade_of(store, copies, model) is Upgrade.NONE:
                return
            try:
                if not await _is_ready(copies, model):
                    await self._make(copies)
                await self._turn()
                if await _fits(store, model):  # another process of this program has done it
                    return
                if await _is_ready(copies, model):
                    self._say("the last events are brought into the new tables")
                    await projector.load()
                    await switch(projector, store, copies, self._log, model)
                    return
            except (StoreInUse, NotLeading) as error:
                self._say(f"another process is waited for: {error}")
                await asyncio.sleep(_LOOK_EVERY)

    async def _make(self, copies: Copies) -> None:
        """Make or resume the copy, and verify it. Raises StoreInUse while another process does."""
        copy = await _begun(copies, self._model)
        try:
            await fill(copy, self._log, self._model, run=self._told("new tables are made for this version"))
            await confirm(copy, self._log, self._model, run=self._told("the new tables are verified"))
        finally:
            await copy.close()

    async def _turn(self) -> None:
        """Wait until this process may change the tables, or another one of the same program has done it."""
        election = self._store.election
        while election is not None and not await election.take() and not await _fits(self._store, self._model):
            self._say("the process that brings the tables of another version up to date is waited for, until it ends")
            await asyncio.sleep(_LOOK_EVERY)

    def _told(self, does: str) -> Run:
        async def run(projector: Projector, until: int) -> None:
            self._say(does)
            self._replay = projector, until
            await projector.run(until=until)

        return run

    def _say(self, does: str) -> None:
        if does and does != self._does:
            log.warning("a new version takes the read model over", read_model=self._model.name, state=does)
        self._does, self._replay = does, None


async def _begun(copies: Copies, model: ReadModel) -> Store:
    """Return the copy to write to, open: the one that this program has begun, or a new one.

    Only the process that has it open judges it: a copy that another process has just begun looks as if made for another program.
    """
    copy = copies.store(CopyPart.NEW)
    try:
        await copy.open()
        if not (await copy.schema()).version or await _is_ours(copy, model):
            return copy
    except StoreDamaged as error:
        log.warning("the copy of the tables is replaced", reason=str(error))
    except BaseException:
        await copy.close()
        raise
    await copy.close()
    await copies.discard(CopyPart.NEW)
    copy = copies.store(CopyPart.NEW)
    await copy.open()
    return copy


async def _is_ours(copy: Reader, model: ReadModel) -> bool:
    try:
        await check_fits(copy, model)
    except CopyRefused as error:
        log.info("the copy of the tables is not for this program", reason=str(error))
        return False
    return True
