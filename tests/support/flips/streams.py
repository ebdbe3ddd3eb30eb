"""Streams of a nats-server whose blocks are changed while it is stopped: many small streams at a time."""

from __future__ import annotations

import asyncio
import random
import re
import shutil
from collections import Counter
from pathlib import Path

import attrs

from eventlog import AggregateDamaged, AggregateId, Commit, EventLogError, LogDamaged, Unavailable
from eventlog.admin.declarations import Declarations, Stream
from eventlog.admin.reconcile import apply_declarations
from eventlog.admin.scrub import LogScrubber
from eventlog.commands.loading import Loader
from eventlog.embedded.nats import EmbeddedServer, ServerFailed
from eventlog.jetstream.api import MessageReader
from eventlog.jetstream.connection import Connection
from eventlog.jetstream.log import JetStreamLog
from projections.projector.continuity import check_against
from projections.rebuild.verify import audit
from projections.store import Checkpoint
from tests.support.flips.harm import Harm, Violation, harm
from tests.support.readside.ledger import EPOCH, MODEL, REGISTRY, Book, Booked, Opened
from tests.support.readside.projecting import proven

ACCOUNTS = ("a", "b", "c")
COMMITS = 15
PATIENCE = 60.0


@attrs.frozen
class Sound:
    """A stream before it is changed: its incarnation, its last sequence, the running digest, the last commit of each account."""

    name: str
    incarnation: str
    last: int
    digest: str
    commits: dict[str, Commit]


def stream_of(number: int) -> Stream:
    config = {"subjects": [f"flip{number}.account.*"], "storage": "file", "allow_direct": True, "allow_atomic": True}
    return Stream(f"FLIP{number}", config, incarnation=True)


def log_on(connection: Connection, name: str) -> JetStreamLog:
    return JetStreamLog(connection, name, REGISTRY)


async def fill(connection: Connection, number: int) -> Sound:
    """A stream with some commits of a few accounts."""
    stream = stream_of(number)
    await apply_declarations(connection, Declarations((stream,)))
    log, book = log_on(connection, stream.name), Book()
    for index in range(COMMITS):
        account = ACCOUNTS[index % len(ACCOUNTS)]
        proposal = book.proposal(account, Booked(index) if index >= len(ACCOUNTS) else Opened("ann"))
        proposal = attrs.evolve(
            proposal,
            aggregate=AggregateId(f"flip{number}.account", account),
        )
        book.stored(account, await log.append(proposal))
    head = await log.head()
    looked = await audit(log, attrs.evolve(MODEL, stream=stream.name), until=head.last)
    commits = {}
    for account in ACCOUNTS:
        commit = await log.last(AggregateId(f"flip{number}.account", account))
        assert commit is not None
        commits[account] = commit
    return Sound(stream.name, head.incarnation, head.last, looked.digest, commits)


async def judge(connection: Connection, number: int, sound: Sound) -> str:
    """How the change of a stream was noticed, or that it has no effect. Raises Violation."""
    log = log_on(connection, sound.name)
    try:
        head = await log.head()
    except EventLogError:
        return "the stream cannot be used"
    checkpoint = Checkpoint(
        projection="accounts", version=1, incarnation=sound.incarnation, sequence=sound.last, applied=sound.last
    )
    try:
        check_against(head, "accounts", checkpoint)
    except LogDamaged as error:
        return f"tables refuse the log: {type(error).__name__}"
    await _check_reads(log, number, sound)
    scrubbed = await LogScrubber(MessageReader(connection, sound.name), REGISTRY, log.head).scrub()
    try:
        async with asyncio.timeout(PATIENCE):
            looked = await audit(
                log, attrs.evolve(MODEL, stream=sound.name), until=sound.last, marks=proven((), sound.last, sound.digest)
            )
    except (LogDamaged, Unavailable) as error:
        if not scrubbed.count:
            raise Violation(f"verify finds {error}, and the scrubber nothing") from error
        return "scrub and verify name it"
    if looked.problems:
        return "verify names it" if not scrubbed.count else "scrub and verify name it"
    if scrubbed.count:
        raise Violation(f"the scrubber finds {scrubbed.found}, and verify nothing")
    return "without effect: all records are as they were"


async def _check_reads(log: JetStreamLog, number: int, sound: Sound) -> None:
    """Each account is as it was, or refused; never absent, never older."""
    for account, commit in sound.commits.items():
        aggregate = AggregateId(f"flip{number}.account", account)
        try:
            loaded = await Loader(log, lambda: EPOCH).load(aggregate, fresh=True)
        except (AggregateDamaged, Unavailable):
            continue
        if (loaded.sequence, loaded.digest) != (commit.sequence, commit.digest):
            raise Violation(f"{aggregate.subject} reads as of sequence {loaded.sequence}, and {commit.sequence} was acknowledged")


async def flips(directory: Path, trials: int, seed: int, *, together: int = 50) -> Counter[str]:
    """Make trials, each a random change of one stream; gives how many were noticed in which way. Raises Violation."""
    chance, outcomes = random.Random(seed), Counter[str]()
    server = EmbeddedServer(directory / "nats", durable=False, start_timeout=PATIENCE / 4)
    pristine, live = directory / "pristine", directory / "nats" / "jetstream"
    async with server, Connection.open(server.url, name="flips") as connection:
        sounds = [await fill(connection, number) for number in range(min(together, trials))]
    await asyncio.to_thread(shutil.copytree, live, pristine)
    while trials > 0:
        await asyncio.to_thread(shutil.rmtree, live)
        await asyncio.to_thread(shutil.copytree, pristine, live)
        done = [await asyncio.to_thread(_harm, live, sound, chance) for sound in sounds[:trials]]
        stuck = await _stuck(server, live, pristine)
        outcomes["nats-server does not start"] += len(stuck)
        async with server, Connection.open(server.url, name="flips") as connection:
            for number, what in enumerate(done):
                if sounds[number].name in stuck:
                    continue
                try:
                    outcomes[await judge(connection, number, sounds[number])] += 1
                except Violation as error:
                    raise Violation(f"seed {seed}, {sounds[number].name}, {what}: {error}") from error
        trials -= len(done)
    return outcomes


async def _stuck(server: EmbeddedServer, live: Path, pristine: Path) -> set[str]:
    """The streams on whose blocks nats-server hangs when it starts; they are put back, so that it starts without them."""
    found = set[str]()
    while True:
        try:
            await server.start()
        except ServerFailed:
            more = await asyncio.to_thread(_not_restored, server.data_dir / "nats-server.log")
            if not more - found:
                raise
            found |= more
            for name in more:
                await asyncio.to_thread(_put_back, live, pristine, name)
        else:
            return found


def _put_back(live: Path, pristine: Path, name: str) -> None:
    place = next(live.glob(f"**/streams/{name}"))
    shutil.rmtree(place)
    shutil.copytree(pristine / place.relative_to(live), place)


def _not_restored(log: Path) -> set[str]:
    """The streams that the last server process began to read, and did not finish."""
    lines = log.read_text(errors="replace").splitlines()
    process = next(line.partition("]")[0] for line in reversed(lines) if line.startswith("["))
    ours = "\n".join(line for line in lines if line.startswith(f"{process}]"))
    began = set(re.findall(r"Starting restore for stream '\$G > (\w+)'", ours))
    return began - set(re.findall(r"Restored .* for stream '\$G > (\w+)'", ours))


def _harm(live: Path, sound: Sound, chance: random.Random) -> Harm:
    """Change a block of a stream; every second time as after kill -9, when the server reads the blocks again."""
    messages = next(live.glob(f"**/streams/{sound.name}/msgs"))
    if chance.random() < 0.5:
        (messages / "index.db").unlink(missing_ok=True)
    return harm(sorted(messages.glob("*.blk")), chance)
