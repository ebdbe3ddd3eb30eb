"""The program `projections` for operators: its commands, help and exit codes.

A command imports slow modules when it runs, so that help and completion start fast.
"""

from __future__ import annotations

from collections.abc import Sequence

from terminalkit.failure import ExitCode
from terminalkit.program import Command, Program

__all__ = ["PROGRAM", "main"]

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
        "status": Command("projections.cli.tables", "Show the position of each projection, and whether it can continue."),
        "verify": Command("projections.cli.tables", "Fold the log and compare the result with the live tables row by row."),
        "rebuild": Command("projections.cli.tables", "Rebuild a read model next to the live tables, and switch to it."),
        "resume": Command("projections.cli.tables", "Continue a stopped rebuild, and switch to its copy."),
        "switch": Command("projections.cli.tables", "Switch to the copy that was made."),
        "rollback": Command("projections.cli.tables", "Switch back to the tables that were live before."),
        "parked": Command("projections.cli.repair", "List the aggregates that wait behind an event that cannot be applied."),
        "unpark": Command("projections.cli.repair", "After a fix: apply what waits, in order."),
        "events": Command("projections.cli.log", "Search the log and print events; follow it."),
        "scrub": Command("projections.cli.repair", "Read every record of the log once, and name damaged records."),
        "repair": Command("projections.cli.repair", "Restore damaged records of the log from a replica or a backup."),
        "streams": Command(
            "projections.cli.log", "Compare streams with their declarations, bring them there; copy and restore them."
        ),
        "migrate": Command("projections.cli.tables", "Apply and take back migrations of a read model's schema."),
        "completion": Command("projections.cli.options", "Print the script that lets SHELL complete commands and options."),
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
