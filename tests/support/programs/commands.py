"""The commands of a program, as click has them."""

from __future__ import annotations

from collections.abc import Iterator

import click


def commands(group: click.Group, *names: str) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """Every command and group below a group, with its path."""
    for name in group.list_commands(click.Context(group)):
        command = group.get_command(click.Context(group), name)
        assert command is not None
        yield (*names, name), command
        if isinstance(command, click.Group):
            yield from commands(command, *names, name)


def leaves(group: click.Group) -> set[str]:
    """The full names of the commands that do something, without the program's."""
    return {" ".join(path) for path, command in commands(group) if not isinstance(command, click.Group)}
