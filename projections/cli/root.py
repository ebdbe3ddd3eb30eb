"""The program `projections`: its commands and what it says of itself."""

from __future__ import annotations

from collections.abc import Sequence

from terminalkit.exits import ExitCode
from terminalkit.program import Command, Program

PROGRAM = Program(
    name="projections",
    distribution="gctd",
    summary="Look at read models and at the event log that they are made from.",
    epilog="""\b
Examples:
  projections status                                     how far the read models are
  projections verify                                     whether the tables are what the log says
  projections events --type TaskFailed --json            what failed, for a program to read
  projections streams plan                               what differs from streams.yaml""",
    commands={
        "status": Command("projections.cli.status", "Show how far each projection has come, and whether it can go on."),
        "verify": Command("projections.cli.verify", "Fold the log afresh and compare with the live tables, row by row."),
        "rebuild": Command("projections.cli.rebuild", "Make a read model again beside the live tables, and switch to it."),
        "resume": Command("projections.cli.rebuild", "Go on with a rebuild that was stopped, and switch to it."),
        "switch": Command("projections.cli.switching", "Switch to the copy that was made."),
        "rollback": Command("projections.cli.switching", "Switch back to the tables that were live before."),
        "parked": Command("projections.cli.parked", "List the aggregates that wait behind an event that cannot be applied."),
        "unpark": Command("projections.cli.parked", "After a fix: apply what waits, in order."),
        "events": Command("projections.cli.events", "Search the log and print events; follow it."),
        "streams": Command(
            "projections.cli.streams", "Compare streams with their declarations, bring them there; copy and restore them."
        ),
        "migrate": Command("projections.cli.migrate", "Apply and take back migrations of a read model's schema."),
        "completion": Command("projections.cli.completion", "Print the script that lets SHELL complete commands and options."),
    },
    meanings={
        ExitCode.CONFLICT: (
            "conflict: tables differ from the log, streams from their declarations, a projection cannot go on, a schema is "
            "dirty, something stays parked, a copy is refused"
        ),
        ExitCode.UNAVAILABLE: "unavailable: the broker or the database; try again later",
    },
    hints={
        ExitCode.UNAVAILABLE: "is it running? say where it is with --nats-url and --database (GCTD_NATS_URL, GCTD_DATABASE_URL)",
        ExitCode.TIMEOUT: "allow more time with --timeout",
    },
)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the program with these arguments (None: those of the process) and give its exit code."""
    return PROGRAM.run(argv)
