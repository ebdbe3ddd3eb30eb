"""The pantry as a newer version of the program would be: with a table more, whose projection fills it.

python -m tests.support.pantry.newer serve

Making its tables waits half way until the file is there that NEWER_GATE names.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from pathlib import Path

import attrs

import pantry.readmodel as read_model
from eventlog import Commit
from pantry.readmodel import MODEL
from projections.migrations import migrations_of
from projections.model import EVERY, Change, Column, Projection, Put, ReadModel, Table
from projections.projector.projector import Projector
from projections.rebuild import rebuild
from tests.support.waiting import wait_until

SEEN = Table("seen", (Column("subject"), Column("sequence", "integer")), key=("subject",))


class Newer(ReadModel):
    """With one migration more."""

    def migration_files(self) -> Iterable[tuple[str, str]]:
        """File name and text of every migration file."""
        name = f"{1 + len(migrations_of(MODEL, 'sqlite')):06d}_create_seen_table"
        made = "CREATE TABLE seen (subject TEXT NOT NULL PRIMARY KEY, sequence {} NOT NULL){};"
        sqlite, postgres = made.format("INTEGER", " STRICT"), made.format("BIGINT", "")
        more = [(f"{name}.up.sqlite.sql", sqlite), (f"{name}.up.postgres.sql", postgres)]
        return [*super().migration_files(), *more, (f"{name}.down.sql", "DROP TABLE seen;")]


def seen(commit: Commit) -> Iterable[Change]:
    """A row for each aggregate."""
    return (Put(SEEN, (commit.subject, commit.sequence)),)


NEWER = Newer(
    **{
        **{field.name: getattr(MODEL, field.name) for field in attrs.fields(ReadModel)},
        "projections": (*MODEL.projections, Projection("seen", 1, (SEEN,), {EVERY: seen})),
    }
)


class Halting(Projector):
    """Stops half way until the file is there."""

    async def run(self, *, until: int | None = None) -> None:
        """As every projector."""
        assert until is not None
        await super().run(until=until // 2)
        await wait_until(Path(os.environ["NEWER_GATE"]).exists, timeout=600, every=0.05)
        await super().run(until=until)


if __name__ == "__main__":
    read_model.MODEL = read_model.model.MODEL = NEWER
    rebuild.Projector = Halting  # type: ignore[attr-defined]  # as `fill` finds it
    from pantry.cli import main  # from now on the model is the newer one

    sys.exit(main())
