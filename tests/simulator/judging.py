"""The end of a simulation: whether every promise was kept, and whether each process continues or has a reason not to."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from tests.simulator.clients import ACCOUNTS, REFUSED
from tests.simulator.process import Process, Request
from tests.support.log.linearizability import UNANSWERED, SequentialModel, broken, judge

if TYPE_CHECKING:
    from tests.simulator.simulation import Simulation

_HEALED_WITHIN = 90.0
_LOOK_EVERY = 0.5

State = tuple[int, int]


def after(state: State, call: int | None, answer: Any) -> Iterable[State]:
    """An account that does one thing at a time: balance and number of movements."""
    if call is None:
        return [state] if answer == state else []
    balance, movements = state
    then = (balance + call, movements + 1)
    if answer is UNANSWERED:
        return [then] if then[0] >= 0 else []
    if answer == REFUSED:
        return [state] if then[0] < 0 else []
    return [then] if answer == then else []


ONE_AT_A_TIME: SequentialModel[State] = SequentialModel((0, 0), after)


async def final_violations(simulation: Simulation) -> list[str]:
    """The promises that are broken at the end, with all faults over."""
    found = await _going_on(simulation)
    found += _acknowledged(simulation)
    found += _denied(simulation)
    found += _incarnations(simulation)
    found += await _scrubbed(simulation)
    if simulation.damaged is None:
        found += [str(verdict) for verdict in broken(judge(simulation.clients.history, ONE_AT_A_TIME))]
    return found


async def _going_on(simulation: Simulation) -> list[str]:
    """Each process applies all of the log and takes writes, or it has stopped with a reason and takes none."""
    end = simulation.loop.time() + _HEALED_WITHIN
    while not all(_settled(simulation, process) for process in simulation.running()):
        if simulation.loop.time() > end:
            return [
                f"{process.name} neither goes on nor says why: {process.serving and process.projector.status()}"
                for process in simulation.running()
                if not _settled(simulation, process)
            ]
        await asyncio.sleep(_LOOK_EVERY)
    found = []
    for process in simulation.running():
        stopped = process.stopped is not None
        if stopped and simulation.damaged is None:
            found.append(f"{process.name} has stopped without damage: {process.stopped}")
        found += await _probe(simulation, process, stopped=stopped)
    return found


def _settled(simulation: Simulation, process: Process) -> bool:
    if process.stopped is not None:
        return True
    end = len(simulation.stream.records)
    log = simulation.stream.lineages[-1]
    going = process.serving and process.link.is_connected
    return going and process.projector.position >= end and simulation.oracle.tables_are_fold_of(log)


async def _probe(simulation: Simulation, process: Process, *, stopped: bool) -> list[str]:
    """One more booking on each account: taken by a process that runs, refused by a process that has stopped."""
    found = []
    for account in ACCOUNTS:
        id_, stored = f"probe-{process.name}-{account}", len(simulation.stream.records)
        end, number, kind, reason = simulation.loop.time() + _HEALED_WITHIN, 0, "", ""
        while kind != "done" and simulation.loop.time() < end:
            request = Request(id=f"{id_}.{number}", account=account, amount=1, key=id_)
            simulation.clients.begun[request.id] = simulation.loop.time()
            answer = await asyncio.wait_for(process.spawn(process.write(request)), 30)
            simulation.clients.note(request, process, answer)
            kind, reason, number = answer.kind, answer.reason, number + 1
            if stopped or simulation.damaged is not None:
                break
            await asyncio.sleep(_LOOK_EVERY)
        if stopped and len(simulation.stream.records) > stored:
            found.append(f"{process.name} has stopped, and stores a booking on {account}")
        if not stopped and kind != "done" and simulation.damaged is None:
            found.append(f"{process.name} goes on, and refuses a booking on {account}: {reason}")
    return found


async def _scrubbed(simulation: Simulation) -> list[str]:
    """A pass of the scrubber names every record that cannot be read or does not follow. In a sound log it names none."""
    wanted = {record.sequence for record in simulation.stream.records if not record.readable}
    wanted |= {sequence for sequence in simulation.oracle.unchained.values() if sequence <= len(simulation.stream.records)}
    sound = simulation.damaged is None
    if not wanted and not sound:
        return []
    process = simulation.running()[0]
    end = simulation.loop.time() + _HEALED_WITHIN
    # A process that has stopped may have no connection yet.
    while not process.link.is_connected and simulation.loop.time() < end:  # noqa: ASYNC110 - a link sets no event
        await asyncio.sleep(_LOOK_EVERY)
    named = await process.spawn(process.scrub())
    found = [f"a pass of the scrubber does not name sequence {sequence}" for sequence in sorted(wanted - named)]
    found += [f"a pass of the scrubber names sequence {sequence}" for sequence in sorted(named - wanted) if sound]
    return found


def _acknowledged(simulation: Simulation) -> list[str]:
    """Every acknowledged booking is in the log, unless records were lost."""
    found = []
    records = simulation.stream.records
    for one in simulation.clients.acknowledged:
        events = records[one.sequence - 1].body["events"] if one.sequence <= len(records) else []
        begun = one.request.rpartition(".")[0]  # any of its tries
        if any(event["correlation"].startswith(f"{begun}.") for event in events):
            continue
        if not simulation.excused(one.sequence):
            found.append(f"{one} is not in the log")
    return found


def _denied(simulation: Simulation) -> list[str]:
    """A request that was denied is not in the log."""
    return [
        f"{event['correlation']} was said not to be stored, it is at sequence {record.sequence}"
        for record in simulation.stream.records
        for event in record.body["events"]
        if event["correlation"] in simulation.clients.not_stored
    ]


def _incarnations(simulation: Simulation) -> list[str]:
    """A recreated stream gets no new aggregate from a process that knew the stream before.

    A command that began before may be too late to notice. A commit to an aggregate that is in both streams has its guard.
    """
    found = []
    for before, lineage in zip(simulation.stream.lineages, simulation.stream.lineages[1:], strict=False):
        if before.incarnation == lineage.incarnation:
            continue
        for record in lineage.records[lineage.shared :]:
            writer = record.body["id"].partition("-")[0]
            begun = min(simulation.clients.begun[event["correlation"]] for event in record.body["events"])
            if record.is_first and begun > lineage.begun and simulation.knew_before(writer, lineage.begun):
                found.append(f"{writer}, which knew the stream before, wrote sequence {record.sequence} into the new one")
    return found


__all__ = ["ONE_AT_A_TIME", "final_violations"]
