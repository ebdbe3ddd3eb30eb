"""The limits of the gate as options of commands."""

from __future__ import annotations

import click

from terminalkit import Choice, Function

_LIMITS = (
    click.option(
        "--threshold", type=click.FloatRange(min=0), help="Value above which a function is risky.  [default: the project's]"
    ),
    click.option("--max-crap", type=click.FloatRange(min=0), help="Most that the value of any function may be."),
    click.option("--max-exceeded", type=click.IntRange(min=0), help="Most risky functions."),
    click.option("--max-average", type=click.FloatRange(min=0), help="Most that the average may be."),
    click.option("--min-coverage", type=click.FloatRange(0, 100), help="Least share of covered statements, in per cent."),
    click.option("--max-uncovered", type=click.IntRange(min=0), help="Most packages without coverage."),
    click.option("--max-new", type=click.IntRange(min=0), default=0, show_default=True, help="Most new risky functions."),
    click.option(
        "--max-worse", type=click.IntRange(min=0), default=0, show_default=True, help="Most functions whose value rose."
    ),
    click.option(
        "--worse",
        type=Choice(["risky", "any"]),
        default="risky",
        show_default=True,
        help="Functions that count for --max-worse: the ones that are risky now, or any.",
    ),
    click.option(
        "--max-excluded", type=click.IntRange(min=0), help="Most functions that leave the measured set.  [default: any number]"
    ),
    click.option("--require-measured", is_flag=True, help="Fail if the coverage of a function is not known."),
    click.option("--absolute", is_flag=True, help="Do not compare: ignore new, worse and excluded functions."),
)


def limit_options(function: Function) -> Function:
    """Give a command the limits of the gate."""
    for option in reversed(_LIMITS):
        function = option(function)
    return function
