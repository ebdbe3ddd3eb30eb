"""Promises about checkpoints, and all that a store keeps with them: digests, parked aggregates, the state of passes."""

from __future__ import annotations

import asyncio

import attrs

from eventlog.commands.loading import KeyUse
from projections.errors import RowRefused
from projections.keys import find_uses
from projections.model import COMMAND_KEYS, KEYS, Put
from projections.store import CheckpointOutcome, Mark, SchemaVersion, Step, Store
from tests.support.readside.conformance.tables import (
    MAP,
    PEOPLE,
    PLACES,
    VISITORS,
    VISITS,
    OnTables,
    checkpoint,
    parked,
    person,
    refused,
    step,
    visit,
)


def key_row(use: KeyUse) -> Put:
    """The row of a use."""
    return Put(COMMAND_KEYS, (use.key, use.sequence, use.fingerprint, use.subject))


class CheckpointPromises(OnTables):
    """The checkpoint guards each step, and moves with its rows."""

    async def test_a_new_store_has_nothing(self, store: Store) -> None:
        """No checkpoint, no migration, no key, no table of a model."""
        assert await store.checkpoints() == {}
        assert await store.schema() == SchemaVersion(0)
        assert await find_uses(store, ["k"]) == {}
        assert await store.columns("people") == []
        assert await store.parked() == []

    async def test_digests_and_marks_are_written_with_the_checkpoint(self, store: Store) -> None:
        """They are read back. An existing mark stays. A checkpoint without digests has none, also if it had some before."""
        await self.made(store)
        first = attrs.evolve(checkpoint(5), record="r5", digest="d5")
        marks = [Mark("S", 2, "a", "b"), Mark("S", 4, "c", "d"), Mark("T", 4, "e", "f")]
        plain = Step(projection=VISITORS, before=None, after=first, changes=())
        assert await store.advance([plain], {}, marks) is CheckpointOutcome.STORED
        assert await store.checkpoints() == {VISITORS.name: first}
        assert await store.marks("S") == marks[:2]
        assert await store.marks("S", above=2) == marks[1:2]
        again = Step(projection=VISITORS, before=attrs.evolve(first, record="other"), after=checkpoint(6), changes=())
        assert await store.advance([again], {}, [Mark("S", 6, "g", "h")]) is CheckpointOutcome.MISMATCH
        second = Step(projection=VISITORS, before=first, after=checkpoint(6), changes=())
        assert await store.advance([second], {}, [Mark("S", 4, "x", "x"), Mark("S", 6, "g", "h")]) is CheckpointOutcome.STORED
        assert await store.checkpoints() == {VISITORS.name: checkpoint(6)}
        assert await store.marks("S") == [*marks[:2], Mark("S", 6, "g", "h")]

    async def test_the_state_of_the_passes_over_a_log_is_kept(self, store: Store) -> None:
        """The newest one of each stream; emptying a projection leaves it."""
        await self.made(store)
        assert await store.scrubs("S") is None
        for state in ("first", "second"):
            await store.keep_scrubs("S", state)
        await store.keep_scrubs("T", "other")
        await store.forget([VISITORS])
        assert (await store.scrubs("S"), await store.scrubs("T")) == ("second", "other")

    async def test_the_state_of_the_tables_is_another_one_after_each_change(self, store: Store) -> None:
        """Two equal states have the same rows, if the store knows its state at all."""
        await self.made(store)
        states = [store.state()]
        await store.advance([step(0, 5, person("ann", 3))])
        states.append(store.state())
        await store.forget([VISITORS])
        states.append(store.state())
        assert await store.fetch("SELECT id FROM people") == []
        assert store.state() == states[-1]
        known = [state for state in states if state is not None]
        assert len(set(known)) == len(known)

    async def test_a_checkpoint_that_moved_lets_nothing_through(self, store: Store) -> None:
        """Of several steps no row."""
        await self.made(store)
        await store.advance([step(0, 5, person("ann")), step(0, 5, projection=MAP)])
        for wrong in (0, 4, 6):
            steps = [step(wrong, 9, person("bob")), step(5, 9, Put(PLACES, ("hill",)), projection=MAP)]
            assert await store.advance(steps) is CheckpointOutcome.MISMATCH
        assert await store.checkpoints() == {"visitors": checkpoint(5), "map": checkpoint(5, MAP)}
        assert [row["id"] for row in await self.rows(store, PEOPLE)] == ["ann"]
        assert await self.rows(store, PLACES) == []

    async def test_version_and_incarnation_are_compared_too(self, store: Store) -> None:
        """A checkpoint of another stream at the same sequence is another checkpoint."""
        await self.made(store)
        await store.advance([step(0, 5)])
        other = Step(
            projection=VISITORS, before=checkpoint(5, incarnation="two"), after=checkpoint(6, incarnation="two"), changes=()
        )
        assert await store.advance([other]) is CheckpointOutcome.MISMATCH

    async def test_a_step_that_was_stored_is_known_again(self, store: Store) -> None:
        """The answer to an earlier try may have been lost."""
        await self.made(store)
        steps = [step(0, 5, person("ann", 1))]
        assert await store.advance(steps) is CheckpointOutcome.STORED
        assert await store.advance(steps) is CheckpointOutcome.ALREADY
        assert await store.advance([step(5, 6, person("ann", 2))]) is CheckpointOutcome.STORED
        assert await store.advance(steps) is CheckpointOutcome.MISMATCH
        assert [row["age"] for row in await self.rows(store, PEOPLE)] == [2]

    async def test_of_two_projectors_one_goes_on(self, store: Store) -> None:
        """At the same moment, from the same checkpoint, with different rows."""
        await self.made(store)
        outcomes = await asyncio.gather(*(store.advance([step(0, 5 + n, person(f"p{n}"))]) for n in range(8)))
        assert sorted(outcome.value for outcome in outcomes) == ["mismatch"] * 7 + ["stored"]
        assert len(await self.rows(store, PEOPLE)) == 1

    async def test_the_first_use_of_a_key_counts(self, store: Store) -> None:
        """In one batch and over several. A key that no database holds unchanged is found too, among many others."""
        uses = [KeyUse("key-ü", "print", "a.b.c", 1), KeyUse("key-ü", None, "a.b.d", 2), KeyUse("k\0", None, "a.b.d", 2)]
        later = [KeyUse(f"k{number}", None, "a.b.e", 3) for number in range(700)]
        await store.advance([step(0, 2, *map(key_row, uses), projection=KEYS)])
        await store.advance([step(2, 3, *map(key_row, [attrs.evolve(uses[0], sequence=3), *later]), projection=KEYS)])
        assert await find_uses(store, ["key-ü", "absent"]) == {"key-ü": uses[0]}
        assert [use.sequence for use in (await find_uses(store, ["k\0", "k"])).values()] == [2]
        assert len(await find_uses(store, [use.key for use in later])) == 700
        assert await find_uses(store, []) == {}

    async def test_what_is_parked_is_kept_with_the_checkpoint(self, store: Store) -> None:
        """By projection and sequence; put again over what was there, taken away, and nothing where the checkpoint moved."""
        await self.made(store)
        ann, bob, lake = parked("p.ann", 5), parked("p.bob", 2), parked("p.ann", 4, MAP, types="")
        assert await store.advance([step(0, 5)], {one.place: one for one in (ann, bob, lake)}) is CheckpointOutcome.STORED
        assert await store.parked() == [lake, bob, ann]
        more = parked("p.ann", 5, waiting=3, last=9)
        assert await store.advance([step(4, 9)], {more.place: more, bob.place: None}) is CheckpointOutcome.MISMATCH
        assert await store.parked() == [lake, bob, ann]
        assert (
            await store.advance([step(5, 9)], {more.place: more, bob.place: None, ("map", "p.never"): None})
            is CheckpointOutcome.STORED
        )
        assert await store.parked() == [lake, more]
        with refused(RowRefused):
            await store.advance([step(9, 10, person("bob", -1))], {more.place: None})
        assert await store.parked() == [lake, more]
        assert await store.advance([], {lake.place: None}) is CheckpointOutcome.STORED
        await store.close()
        await store.open()
        assert await store.parked() == [more]

    async def test_forgetting_empties_one_projection_and_no_other(self, store: Store) -> None:
        """Rows, checkpoint and parked aggregates go, the ones of other projections stay."""
        await self.made(store)
        ann, lake = parked("p.ann", 5), parked("p.lake", 5, MAP)
        steps = [step(0, 5, person("ann"), visit("ann", 1)), step(0, 5, Put(PLACES, ("lake",)), projection=MAP)]
        await store.advance(steps, {ann.place: ann, lake.place: lake})
        await store.forget([VISITORS])
        assert await store.parked() == [lake]
        assert await store.checkpoints() == {"map": checkpoint(5, MAP)}
        assert await self.rows(store, PEOPLE) == []
        assert await self.rows(store, VISITS) == []
        assert await self.rows(store, PLACES) == [{"name": "lake"}]
        assert await store.advance([step(0, 5, person("bob"))]) is CheckpointOutcome.STORED

    async def test_all_of_it_is_there_after_reopening(self, store: Store) -> None:
        """Rows, checkpoints, version."""
        await self.made(store)
        await store.advance([step(0, 5, person("ann"))])
        await store.close()
        await store.open()
        assert await store.checkpoints() == {"visitors": checkpoint(5)}
        assert [row["id"] for row in await self.rows(store, PEOPLE)] == ["ann"]
        assert await store.schema() == SchemaVersion(1)
