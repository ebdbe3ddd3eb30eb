"""Rebuilding a read model next to the live tables: the copy is filled from the log, verified, and put in their place.

Reads and writes continue during a rebuild. A copy keeps its checkpoints, so a resumed rebuild repeats a batch at most. The
verification is stored in the copy as a checkpoint, with the digest of all rows: a copy with other rows is refused.
"""

from __future__ import annotations

import time

import structlog

from eventlog import EventLog
from projections.errors import CopyRefused, NotLeading
from projections.migrations import Migrations, check_tables, migrations_of
from projections.model import Projection, ReadModel
from projections.projector.projector import Projector
from projections.rebuild.copies import Copies, CopyPart, Switching
from projections.rebuild.verify import Run, dump, run_silently, verify
from projections.store import Checkpoint, Reader, Step, Store

log = structlog.get_logger(__name__)

VERIFIED = Projection("(verified)", 1, (), {})
"""Not a projection: its checkpoint is the sequence at which a copy was verified; the incarnation is the digest of the rows."""
_NEAR = 1000
"""Commits that may be missing from a copy when the live tables begin to wait for it."""


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


async def check_whole(copy: Reader, model: ReadModel) -> None:
    """See that a copy is what was verified, row by row. Raises CopyRefused."""
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
    """See that a copy was made by this version of the program. Raises CopyRefused."""
    made, wanted = await copy.schema(), len(migrations_of(model, copy.dialect))
    if made.dirty or made.version != wanted:
        raise CopyRefused(f"the schema of the copy is of version {made.version}, this program has {wanted}")
    checkpoints = await copy.checkpoints()
    for projection in model.projections:
        found = checkpoints.get(projection.name)
        if found is not None and found.version != projection.version:
            raise CopyRefused(
                f"projection {projection.name!r} of the copy is of version {found.version}, this program has {projection.version}"
            )


async def switch(
    projector: Projector,
    store: Switching,
    copies: Copies,
    event_log: EventLog,
    model: ReadModel,
    part: CopyPart = CopyPart.NEW,
) -> None:
    """Have the new copy take the place of the live tables, which are kept as the old ones.

    `projector` brings the live tables up to date, or has been loaded. The copy is brought up to them first; for the last commits
    the projector waits. With OLD as `part` it goes back to the old tables: the live tables become the new copy. Raises
    CopyRefused, StoreInUse, StoreUnavailable, without an effect.
    """
    await _lead(projector, store)
    if part not in await copies.there():
        raise CopyRefused(
            "there is no copy: `projections rebuild` makes one" if part is CopyPart.NEW else "there are no old tables"
        )
    copy, names = copies.store(part), [projection.name for projection in model.projections]
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
            await store.switch(names, part)
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
