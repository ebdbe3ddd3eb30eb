"""A damaged database is set aside, and the read model is rebuilt from the log, without a request."""

from __future__ import annotations

import asyncio
import time

import structlog

from eventlog.support.timers import until_tick
from projections.errors import StoreDamaged, StoreForeign, StoreUnavailable
from projections.migrations import migrate
from projections.model import ReadModel
from projections.projector.writer import pauses
from projections.rebuild.upgrade import WITHHELD, Upgrade, upgrade_of
from projections.store import Store
from projections.stores.databases import copies_of
from projections.stores.sqlite import SQLiteStore

log = structlog.get_logger(__name__)

LOOK_EVERY = 600.0
"""Seconds between looks over the whole file, which find damage in parts that are neither read nor written."""
_NOTICED_WITHIN = 1.0
_MADE_AGAIN = "the database was damaged, and a new one is made"
"""The reason why the tables are not queried until there are new ones."""


async def open_sound(store: Store, model: ReadModel) -> None:
    """Open a database and apply all migrations; one that is damaged is set aside first.

    The tables of another version of the program are left as they are, and withheld: see `projections.rebuild.upgrade`.

    Raises StoreUnavailable, StoreForeign for the database of another program, MigrationError, and StoreDamaged if nothing can
    be set aside.
    """
    try:
        await store.open()
    except StoreDamaged as error:
        await make_again(store, model, error)
    else:
        if await upgrade_of(store, copies_of(store), model) is Upgrade.TABLES:
            store.withheld = WITHHELD
        else:
            await migrate(store, model)
            store.withheld = None


async def make_again(store: Store, model: ReadModel, error: StoreDamaged) -> None:
    """Set a damaged database aside, and open a new one in its place, to be filled from the log. Raises as `open_sound`."""
    if isinstance(error, StoreForeign) or not isinstance(store, SQLiteStore):
        raise error
    store.withheld = _MADE_AGAIN
    await store.close()
    aside = await store.quarantine()
    log.error("a damaged database is set aside and rebuilt from the log", aside=str(aside), reason=str(error))
    await store.open()
    await migrate(store, model)
    store.withheld = None


async def make_again_patiently(store: Store, model: ReadModel, error: StoreDamaged) -> None:
    """Do the same while a service runs: as soon as it is possible, if there is no room on the disk, for example.

    Raises as `open_sound`, but no StoreUnavailable.
    """
    waits, making = pauses(), make_again(store, model, error)
    while True:
        try:
            return await making
        except StoreUnavailable as away:
            log.warning("a new database cannot be made now", reason=str(away))
        await asyncio.sleep(next(waits))
        await store.close()
        making = open_sound(store, model)


async def damaged(store: Store, *, look_every: float = LOOK_EVERY) -> StoreDamaged:
    """Wait until a reader, or a look over all of a database, finds it damaged; for ever if it is sound."""
    looked = time.monotonic()
    while True:
        await asyncio.sleep(until_tick(_NOTICED_WITHIN))
        if not isinstance(store, SQLiteStore):
            continue
        if store.damage is not None:
            return store.damage
        if time.monotonic() - looked >= look_every:
            looked = time.monotonic()
            try:
                problems = await store.problems()
            except StoreDamaged as error:
                return error
            except StoreUnavailable as error:
                log.warning("the database cannot be looked over now", reason=str(error))
                continue
            if problems:
                return StoreDamaged("; ".join(problems))
