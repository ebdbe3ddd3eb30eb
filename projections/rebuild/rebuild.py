"""New tables of a read model next to the live ones: filled from the log, verified, and put in their place.

Reads and writes continue during a rebuild. A copy keeps its checkpoints, so a resumed rebuild repeats a batch at most. The
verification is stored in the copy as a checkpoint, with the digest of all rows: a copy with other rows is refused.

A new version of the program makes its tables when it starts, or before, by its `projections rebuild --no-switch`. The old tables
serve until then. If processes of the old version still run on a shared database, they continue with the old tables, and the new
version waits for them. A damaged database is set aside, and rebuilt from the log without a request.
"""

from __future__ import annotations

import asyncio
import time
from enum import Enum

import attrs
import structlog

from eventlog import EventLog, EventLogError, Unavailable
from eventlog.support.timers import until_tick
from projections.errors import (
    CopyRefused,
    NotLeading,
    ProjectionError,
    StoreDamaged,
    StoreForeign,
    StoreInUse,
    StoreUnavailable,
)
from projections.migrations import Migrations, check_tables, migrate, migrations_of, table_problem
from projections.model import Projection, ReadModel
from projections.projector.projector import Projector
from projections.projector.writer import backoff
from projections.rebuild.verify import Run, dump, run_silently, verify
from projections.store import Checkpoint, Copies, CopyPart, Reader, Step, Store, Switching
from projections.stores.databases import copies_of
from projections.stores.sqlite import SQLiteStore

log = structlog.get_logger(__name__)

VERIFIED = Projection("(verified)", 1, (), {})
"""Not a projection: its checkpoint is the sequence at which a copy was verified; the incarnation is the digest of the rows."""
WITHHELD = "the tables belong to another version of the program, and new ones are being made"
"""The reason why tables of another version are not queried."""
_NOTICED_WITHIN = 1.0
_TURN_EVERY = 0.2
"""Seconds between two looks whether this process may write now."""
_NEAR = 1000
"""Commits that may be missing from a copy when the live tables begin to wait for it."""
_MADE_AGAIN = "the database was damaged, and a new one is made"
"""The reason why the tables are not queried until there are new ones."""


# Make, verify and switch


async def fill(copy: Store, event_log: EventLog, model: ReadModel, *, run: Run = run_silently) -> int:
    """Bring a copy from its position to the end of the log; gives that sequence. Raises as `Projector.run`, MigrationError."""
    await Migrations(copy, model).up()
    await check_tables(copy, model)
    await copy.leave_indexes_out(model.projections)
    while True:
        head = await event_log.head()
        if head.last:
            await run(Projector(event_log, copy, model), head.last)
        await copy.make_indexes()
        if (await event_log.head()).last - head.last <= _NEAR:
            return head.last


async def confirm(copy: Store, event_log: EventLog, model: ReadModel, *, run: Run = run_silently) -> int:
    """Verify a copy against a fold of the log, row by row, and note it; gives the sequence. Raises CopyRefused."""
    verdict = await verify(copy, event_log, model, run=run)
    if verdict.difference is not None:
        raise CopyRefused(f"the copy is not what the log says: {verdict.difference}")
    before = (await copy.checkpoints()).get(VERIFIED.name)
    digest = (await dump(copy, model)).digest
    after = Checkpoint(
        projection=VERIFIED.name, version=VERIFIED.version, incarnation=digest, sequence=verdict.sequence, applied=0
    )
    await copy.advance([Step(projection=VERIFIED, before=before, after=after, changes=())])
    return verdict.sequence


async def switch(
    projector: Projector,
    store: Switching,
    copies: Copies,
    event_log: EventLog,
    model: ReadModel,
    part: CopyPart = CopyPart.NEW,
) -> None:
    """Put the new copy in the place of the live tables, which are kept as the old ones.

    `projector` brings the live tables up to date, or has been loaded. The copy is brought up to them first; for the last commits
    the projector waits. With OLD as `part` it goes back to the old tables: the live tables become the new copy. Raises
    CopyRefused, StoreInUse, StoreUnavailable, without an effect.
    """
    await _lead(projector, store)
    if part not in await copies.there():
        raise CopyRefused(
            "there is no copy: `projections rebuild` makes one" if part is CopyPart.NEW else "there are no old tables"
        )
    copy = copies.store(part)
    await copy.open()
    try:
        await (check_ready if part is CopyPart.NEW else check_fits)(copy, model)
        await copy.make_indexes()  # another process may have begun to resume it
        while True:
            end = projector.farthest
            await Projector(event_log, copy, model).run(until=end)
            if projector.farthest - end <= _NEAR:
                break
        async with projector.held() as end:
            await Projector(event_log, copy, model).run(until=end)
            await copy.close()
            started = time.perf_counter()
            await store.switch([projection.name for projection in model.projections], part)
            took = time.perf_counter() - started
    finally:
        await copy.close()
    log.info("read model switched", read_model=model.name, to=part.value, sequence=end, milliseconds=round(took * 1000, 1))


async def _lead(projector: Projector, store: Store) -> None:
    """Of several processes on one database only the one that writes changes its tables. Raises NotLeading in another one."""
    if store.election is not None:
        if not await store.election.take():
            raise NotLeading(f"{store.identity} is in use: another process brings it up to date")
        if not projector.lead.held:
            await projector.load()  # it does not run; others may have written since it was loaded


async def check_whole(copy: Reader, model: ReadModel) -> None:
    """Check that a copy is what was verified, row by row. Raises CopyRefused."""
    noted = await check_ready(copy, model)
    if (await dump(copy, model)).digest != noted:
        raise CopyRefused("the copy has changed since it was verified: rebuild it")


async def check_ready(copy: Reader, model: ReadModel) -> str:
    """Check that this version of the program made and verified a copy, unchanged since; gives the digest. Raises CopyRefused."""
    await check_fits(copy, model)
    checkpoints = await copy.checkpoints()
    noted = checkpoints.get(VERIFIED.name)
    reached = {checkpoints[p.name].sequence if p.name in checkpoints else 0 for p in model.projections}
    if noted is None or reached != {noted.sequence}:
        raise CopyRefused("the copy is not verified: `projections resume` brings it to its end and verifies it")
    return noted.incarnation


async def check_fits(copy: Reader, model: ReadModel) -> None:
    """Check that a copy was made by this version of the program. Raises CopyRefused."""
    if (await copy.schema()).dirty:
        raise CopyRefused("a migration of the copy was left half done: rebuild it")
    if (problem := await _misfit(copy, model)) is not None:
        raise CopyRefused(f"the copy is of another version of the program: {problem}")


async def _misfit(tables: Reader, model: ReadModel) -> str | None:
    """Why tables are of another version of the program; None if they are of this one, or empty."""
    version, newest = (await tables.schema()).version, len(migrations_of(model, tables.dialect))
    if version != newest:
        return f"the schema is of version {version}, this program has {newest}"
    checkpoints = await tables.checkpoints()
    for projection in model.projections:
        checkpoint = checkpoints.get(projection.name)
        if checkpoint is not None and checkpoint.version != projection.version:
            return f"projection {projection.name!r} is of version {checkpoint.version}, this program has {projection.version}"
    return await _table_problem(tables, model)


async def _table_problem(tables: Reader, model: ReadModel) -> str | None:
    """How tables without migrations differ from the declared ones: the number of the schema cannot tell."""
    return await table_problem(tables, model) if model.migrations is None else None


@attrs.frozen(kw_only=True)
class CopyReport:
    """A copy next to the live tables: its purpose, its sequence, whether it can be switched to, and the reason if it cannot."""

    part: str
    position: int
    ready: bool
    problem: str | None


async def copy_report(copies: Copies, part: CopyPart, model: ReadModel) -> CopyReport:
    """Return the state of a copy, which is there."""
    copy, position, problem = copies.reader(part), 0, None
    try:
        await copy.open()
        checkpoints = await copy.checkpoints()
        position = min((checkpoints[p.name].sequence if p.name in checkpoints else 0 for p in model.projections), default=0)
        await (check_ready if part is CopyPart.NEW else check_fits)(copy, model)
    except ProjectionError as error:
        problem = str(error)
    finally:
        await copy.close()
    return CopyReport(part=part.value, position=position, ready=problem is None, problem=problem)


# Upgrade to a new version of the program


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
    if copies is None or not any(filled) or await _misfit(store, model) is None:
        return Upgrade.NONE
    ready, schema, newest = await _is_ready(copies, model), await store.schema(), len(migrations_of(model, store.dialect))
    if schema.version == newest:
        if await _table_problem(store, model) is not None:
            return Upgrade.TABLES
        return Upgrade.ROWS if ready or all(filled) else Upgrade.NONE
    older = schema.version < newest and not schema.dirty and not schema.taken_back
    return Upgrade.TABLES if ready or older else Upgrade.NONE


async def _is_ready(copies: Copies, model: ReadModel) -> bool:
    """Whether a copy is there that was made for this program, and verified."""
    return CopyPart.NEW in await copies.there() and (await copy_report(copies, CopyPart.NEW, model)).ready


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
        waits, in_place = backoff(), False
        while True:
            try:
                await (self._turn() if in_place else self._change(projector))
                await migrate(self._store, self._model)
            except (StoreUnavailable, Unavailable) as error:
                self._say(f"making the new tables waits: {error}")
                await waits.pause()
            except (ProjectionError, EventLogError) as error:
                self._say(f"the new tables cannot be made: {error}")
                if in_place:
                    raise
                in_place = True
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
                if await _misfit(store, model) is None:  # another process of this program has done it
                    return
                if await _is_ready(copies, model):
                    self._say("the last events are brought into the new tables")
                    await projector.load()
                    await switch(projector, store, copies, self._log, model)
                    return
            except (StoreInUse, NotLeading) as error:
                self._say(f"another process is waited for: {error}")
                await asyncio.sleep(_TURN_EVERY)

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
        while election is not None and not await election.take() and await _misfit(self._store, self._model):
            self._say("the process that brings the tables of another version up to date is waited for, until it ends")
            await asyncio.sleep(_TURN_EVERY)

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
        if (await copy.schema()).version:
            await check_fits(copy, model)
    except (CopyRefused, StoreDamaged) as error:
        log.warning("the copy of the tables is replaced", reason=str(error))
    except BaseException:
        await copy.close()
        raise
    else:
        return copy
    await copy.close()
    await copies.discard(CopyPart.NEW)
    await copy.open()
    return copy


# Recovery of a damaged database


async def open_sound(store: Store, model: ReadModel) -> None:
    """Open a database and apply all migrations; one that is damaged is set aside first.

    The tables of another version of the program are left as they are, and withheld: see `SchemaUpgrade`.

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
    making = make_again(store, model, error)
    waits = backoff()
    while True:
        try:
            await making
        except StoreUnavailable as away:
            log.warning("a new database cannot be made now", reason=str(away))
        else:
            return
        await waits.pause()
        await store.close()
        making = open_sound(store, model)


async def damaged(store: Store) -> StoreDamaged:
    """Wait until a query finds a database damaged; for ever if none does."""
    while True:
        await asyncio.sleep(until_tick(_NOTICED_WITHIN))
        if isinstance(store, SQLiteStore) and store.damage is not None:
            return store.damage
