"""The faults that a simulation injects: some that the system has to live through, some that it has to notice."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.simulator.simulation import Simulation

DAY = 86_400.0

Fault = Callable[["Simulation"], None]


def lost_acknowledgements(simulation: Simulation) -> None:
    """A share of all replies is lost for a while."""
    broker, chance = simulation.broker, simulation.random
    broker.loss = chance.uniform(0.1, 0.7)
    simulation.later(chance.uniform(0.5, 4), lambda: setattr(broker, "loss", 0.0))


def late_replies(simulation: Simulation) -> None:
    """Replies take up to some seconds, and overtake each other."""
    broker, chance = simulation.broker, simulation.random
    broker.busy = chance.uniform(0.05, 4)
    simulation.later(chance.uniform(0.5, 4), lambda: setattr(broker, "busy", 0.0))


def lost_deliveries(simulation: Simulation) -> None:
    """Some deliveries of consumers are lost."""
    broker, chance = simulation.broker, simulation.random
    broker.lost_deliveries = chance.uniform(0.1, 0.5)
    simulation.later(chance.uniform(0.5, 4), lambda: setattr(broker, "lost_deliveries", 0.0))


def stale_follower(simulation: Simulation) -> None:
    """Followers answer reads without the last records. A single replica has no followers."""
    broker, chance = simulation.broker, simulation.random
    broker.lag = chance.randint(1, 6)
    simulation.later(chance.uniform(1, 5), lambda: setattr(broker, "lag", 0))


def broken_link(simulation: Simulation) -> None:
    """A process loses its connection to the broker."""
    link = simulation.random.choice(simulation.running()).link
    simulation.broker.drop(link, simulation.random.uniform(0.05, 3))


def broker_restart(simulation: Simulation) -> None:
    """The broker is stopped and started."""
    simulation.broker.restart(simulation.random.uniform(0.1, 3), unclean=False)


def full_disk(simulation: Simulation) -> None:
    """The broker's disk is full: it answers nothing until it is started again."""
    broker = simulation.broker
    broker.stream.latched = True
    simulation.later(simulation.random.uniform(1, 7), lambda: broker.restart(0.3, unclean=False))


def limit_reached(simulation: Simulation) -> None:
    """The broker refuses appends for a while."""
    stream = simulation.broker.stream
    stream.limited = True
    simulation.later(simulation.random.uniform(0.5, 4), lambda: setattr(stream, "limited", False))


def hang(simulation: Simulation) -> None:
    """A process is stopped, most often the leader, and continues later."""
    chance, process = simulation.random, simulation.leader_or_other()
    seconds = chance.uniform(0.5, 16)
    simulation.loop.hold(process.name)
    simulation.trace(f"{process.name} hangs for {seconds:.1f} s")
    if seconds > 5:  # the server gives up a client that answers no pings
        simulation.later(5, lambda: process.link.cut(chance.uniform(0.1, 12)))
    simulation.later(seconds, lambda: simulation.go_on(process))


def crash(simulation: Simulation) -> None:
    """A process is killed, most often the leader, and another one starts in its place."""
    process = simulation.leader_or_other()
    simulation.kill(process)
    simulation.later(simulation.random.uniform(0.1, 6), simulation.start)


def lost_sessions(simulation: Simulation) -> None:
    """Sessions of the database break, also within a transaction."""
    chance = simulation.random
    share = chance.choice((0.3, 1.0))
    for session in list(simulation.database.sessions.values()):
        if chance.random() < share:
            session.kill()


def slow_database(simulation: Simulation) -> None:
    """Statements take up to some seconds."""
    database, chance = simulation.database, simulation.random
    database.slow = chance.uniform(0.05, 1.5)
    simulation.later(chance.uniform(0.5, 4), lambda: setattr(database, "slow", 0.0))


def lost_lock(simulation: Simulation) -> None:
    """The session of the leader loses its lock and lives on, as behind a pooler that resets sessions."""
    simulation.database.lose_lock()


def database_clock(simulation: Simulation) -> None:
    """The clock of the database jumps."""
    simulation.database.ahead += simulation.random.choice((-DAY, -30.0, 10.0, 3 * DAY))


def process_clock(simulation: Simulation) -> None:
    """The clock of a process jumps."""
    simulation.random.choice(simulation.running()).ahead += simulation.random.choice((-3 * DAY, -30.0, 30.0, 3 * DAY))


PASSING: tuple[Fault, ...] = (
    lost_acknowledgements,
    late_replies,
    lost_deliveries,
    stale_follower,
    broken_link,
    broker_restart,
    full_disk,
    limit_reached,
    hang,
    hang,
    crash,
    crash,
    lost_sessions,
    slow_database,
    lost_lock,
    database_clock,
    process_clock,
)
"""Faults that lose no record: afterwards everything has to continue, and every answer has to be right."""


def torn_tail(simulation: Simulation) -> None:
    """The broker crashes and has lost the last records that it had acknowledged."""
    stream, chance = simulation.broker.stream, simulation.random
    stream.cut(max(0, len(stream.records) - chance.randint(1, 5)), simulation.loop.time())
    simulation.broker.restart(chance.uniform(0.1, 2), unclean=True)


def flipped_bit(simulation: Simulation) -> None:
    """A record cannot be read any more; some time later the broker may crash, and cut the stream there at its start."""
    stream, chance = simulation.broker.stream, simulation.random
    if not stream.records:
        return
    near_the_end = chance.random() < 0.5
    begin = max(1, len(stream.records) - 3) if near_the_end else 1
    stream.flip(chance.randint(begin, len(stream.records)))
    if chance.random() < 0.5:
        seconds = chance.uniform(0, 4)
        simulation.later(seconds, lambda: simulation.broker.restart(chance.uniform(0.1, 2), unclean=True))


def stale_backup(simulation: Simulation) -> None:
    """The files of an older backup take the place of the stream's: nothing tells but the records."""
    stream, chance = simulation.broker.stream, simulation.random
    stream.cut(chance.randint(0, len(stream.records)), simulation.loop.time())
    simulation.broker.changed()
    if chance.random() < 0.5:
        simulation.broker.restart(chance.uniform(0.1, 2), unclean=False)


def restored(simulation: Simulation) -> None:
    """An older backup is restored as this project does it."""
    stream = simulation.broker.stream
    stream.restore(simulation.random.randint(0, len(stream.records)), simulation.loop.time())
    simulation.broker.changed()


def created_anew(simulation: Simulation) -> None:
    """The stream is deleted and created again under the running processes."""
    simulation.broker.stream.create_anew(simulation.loop.time())
    simulation.broker.changed()


DAMAGING: tuple[Fault, ...] = (torn_tail, flipped_bit, stale_backup, restored, created_anew)
"""Faults that lose records: the system has to notice and to report them."""

__all__ = ["DAMAGING", "PASSING", "Fault"]
