"""A new version of the program takes over a read model: old and new tables stand side by side until the new ones are there.

Where the tables themselves differ, the new program makes its own beforehand (`projections rebuild --no-switch`), while the old
one serves, and takes them when it starts. Where only the rows differ it makes them itself, and shows the old ones until it has.
"""

from __future__ import annotations

import asyncio
from enum import Enum

import structlog

from eventlog import EventLog
from projections.copies import Copies, Part, Switching
from projections.errors import CopyRefused, ProjectionError, StoreDamaged, StoreInUse
from projections.migrations import migrations_of
from projections.model import ReadModel
from projections.projector import Projector
from projections.rebuild import check_fits, check_ready, confirm, fill, switch
from projections.store import Reader, Store

log = structlog.get_logger(__name__)

_LOOK_EVERY = 0.2
"""Seconds between two looks whether this process may write now."""


class Upgrade(Enum):
    """What has to become of the tables that a program finds."""

    NONE = "none"
    """They are its own, or there are none, or the migrations see to them: they are emptied, and filled again."""
    TAKE = "take"
    """A copy that was made for this version is there."""
    MAKE = "make"
    """Only rows differ: a copy can be made while the old ones are shown."""


async def upgrade_of(store: Reader, copies: Copies | None, model: ReadModel) -> Upgrade:
    """What has to become of the tables of a read model. Raises StoreUnavailable, StoreDamaged."""
    checkpoints = await store.checkpoints()
    if copies is None or not checkpoints or await _fits(store, model):
        return Upgrade.NONE
    if Part.NEW in await copies.there() and await _is_ready(copies.reader(Part.NEW), model):
        return Upgrade.TAKE
    whole = all(p.name in checkpoints for p in model.projections)
    return Upgrade.MAKE if whole and await _has_tables(store, model) else Upgrade.NONE


async def _fits(store: Reader, model: ReadModel) -> bool:
    checkpoints = await store.checkpoints()
    same_rows = all(checkpoints[p.name].version == p.version for p in model.projections if p.name in checkpoints)
    return same_rows and await _has_tables(store, model)


async def _has_tables(store: Reader, model: ReadModel) -> bool:
    return (await store.schema()).version == len(migrations_of(model, store.dialect))


async def upgrade(projector: Projector, store: Store, copies: Copies | None, event_log: EventLog, model: ReadModel) -> None:
    """Take the copy that is there, or make one, and switch to it; nothing where there is nothing to do.

    The old tables are kept for `rollback`, by the old program. Where that still runs and leads, it is waited for, and so is
    another process that makes the copy. Raises ProjectionError, EventLogError.
    """
    said = False
    while isinstance(store, Switching) and copies is not None:
        found = await upgrade_of(store, copies, model)
        if found is Upgrade.NONE:
            return
        try:
            if found is Upgrade.MAKE:
                await _make(copies, event_log, model)
            if await _is_ours_to_do(store, model):
                log.warning("a new version takes the read model over", read_model=model.name, how=found.value)
                await projector.load()
                await switch(projector, store, copies, event_log, model)
        except StoreInUse as error:
            if not said:
                log.warning("the new tables are in use by another process: it is waited for", reason=str(error))
                said = True
            await asyncio.sleep(_LOOK_EVERY)
        else:
            return


async def _make(copies: Copies, event_log: EventLog, model: ReadModel) -> None:
    """Make the copy, or go on with it, and verify it. Raises StoreInUse while another process does."""
    copy = await _begun(copies, model)
    try:
        log.warning("new tables are made beside the old ones", read_model=model.name)
        await fill(copy, event_log, model)
        await confirm(copy, event_log, model)
    finally:
        await copy.close()


async def _begun(copies: Copies, model: ReadModel) -> Store:
    """The copy to write to, open: the one that this program has begun, or a new one.

    It is looked at by whoever has it: the beginning of another process's looks as if it were for another program.
    """
    copy = copies.store(Part.NEW)
    try:
        await copy.open()
        if not (await copy.schema()).version or await _is_ours(copy, model):
            return copy
    except StoreDamaged as error:
        log.warning("the copy beside the tables is made anew", reason=str(error))
    except BaseException:
        await copy.close()
        raise
    await copy.close()
    await copies.discard(Part.NEW)
    copy = copies.store(Part.NEW)
    await copy.open()
    return copy


async def _is_ours(copy: Reader, model: ReadModel) -> bool:
    try:
        await check_fits(copy, model)
    except CopyRefused as error:
        log.info("the copy beside the tables is not for this program", reason=str(error))
        return False
    return True


async def _is_ours_to_do(store: Store, model: ReadModel) -> bool:
    """Wait until this process may change the tables; False where another one of the same program has done it meanwhile."""
    if store.turns is None:
        return True
    if not await store.turns.take():
        log.warning("the new tables wait for the process that brings the old ones up to date to end", database=store.identity)
    while not await store.turns.take():
        if await _fits(store, model):
            return False
        await asyncio.sleep(_LOOK_EVERY)
    return not await _fits(store, model)


async def _is_ready(copy: Reader, model: ReadModel) -> bool:
    try:
        await copy.open()
        await check_ready(copy, model)
    except ProjectionError as error:
        log.info("the copy beside the tables is not for this program", reason=str(error))
        return False
    finally:
        await copy.close()
    return True
