"""The program `projections`: its commands, help and exit codes."""

from __future__ import annotations

from collections.abc import Sequence

from terminalkit.commands.program import Command, Program
from terminalkit.exits import ExitCode

PROGRAM = Program(
    name="projections",
    summary="Look at read models and at the event log that they are made from.",
    epilog="""\b
Examples:
  projections status                                     how far the read models are
  projections verify                                     whether the tables are what the log says
  projections events --type MoneyMoved --json            what moved, for a program to read
  projections streams plan                               what differs from streams.yaml""",
    commands={
        "status": Command("projections.cli.status", "Show the position of each projection, and whether it can continue."),
        "verify": Command("projections.cli.verify", "Fold the log and compare the result with the live tables row by row."),
        "rebuild": Command("projections.cli.rebuild", "Rebuild a read model next to the live tables, and switch to it."),
        "resume": Command("projections.cli.rebuild", "Continue a stopped rebuild, and switch to its copy."),
        "switch": Command("projections.cli.rebuild", "Switch to the copy that was made."),
        "rollback": Command("projections.cli.rebuild", "Switch back to the tables that were live before."),
        "parked": Command("projections.cli.parked", "List the aggregates that wait behind an event that cannot be applied."),
        "unpark": Command("projections.cli.parked", "After a fix: apply what waits, in order."),
        "events": Command("projections.cli.events", "Search the log and print events; follow it."),
        "scrub": Command("projections.cli.scrub", "Read every record of the log once, and name damaged records."),
        "repair": Command("projections.cli.repair", "Restore damaged records of the log from a replica or a backup."),
        "streams": Command(
            "projections.cli.streams", "Compare streams with their declarations, bring them there; copy and restore them."
        ),
        "migrate": Command("projections.cli.migrate", "Apply and take back migrations of a read model's schema."),
        "completion": Command("projections.cli.completion", "Print the script that lets SHELL complete commands and options."),
    },
    meanings={
        ExitCode.CONFLICT: (
            "conflict: tables differ from the log, streams from their declarations, a projection cannot continue, a schema is "
            "dirty, something stays parked, a copy is refused or damaged, records of the log are damaged"
        ),
        ExitCode.UNAVAILABLE: "unavailable: the broker or the database; try again later",
    },
    hints={
        ExitCode.UNAVAILABLE: "is it running? set its address with --nats-url and --database (NATS_URL, <SERVICE>_DATABASE_URL)",
        ExitCode.TIMEOUT: "allow more time with --timeout",
    },
)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the program with these arguments (None: the arguments of the process) and return its exit code."""
    return PROGRAM.run(argv)
