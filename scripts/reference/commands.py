"""The page of all commands with their options."""

from __future__ import annotations

import inspect
import re
from collections import Counter
from collections.abc import Iterator, Sequence

import click

from gctd.cli.root import PROGRAM as GCTD
from graphql_fn.cli.root import PROGRAM as GRAPHQL
from pantry.cli.root import PROGRAM as PANTRY
from projections.cli import PROGRAM as PROJECTIONS
from reference import paragraph

_INTRODUCTION = """# Commands and options

This page is generated from the code. [Commands](../cli.md) explains output, exit codes and the gate. The options that most
commands of a program have are described once, at its beginning. Each command has `-h` and `--help`. Directories are as on Linux.
"""
_PROGRAMS = (GCTD, PANTRY, PROJECTIONS, GRAPHQL)
_TABLE = ["| option | meaning | environment | default |", "|---|---|---|---|"]
_DIRECTORIES = {r"(?<=sqlite:)/\S*(?=/(\w+)/\1\.db)": "~/.local/share", r"^/\S*(?=/gctd$)": "~/.cache"}
_EXTRA = re.compile(r"\s\s?\[([^\[\]]*)\](?=\s|$)")

Row = tuple[str, ...]


def text() -> str:
    """Return the page."""
    lines = [_INTRODUCTION]
    for program in _PROGRAMS:
        found = list(contexts(click.Context(program.group, info_name=program.name)))
        options = [_options(context) for context in found]
        times = Counter(row for rows in options for row in rows)
        common = [row for row, count in times.items() if 2 * count > len(found)]
        lines += [f"## `{program.name}`", "", *_table(common)]
        for context, rows in zip(found, options, strict=True):
            lines += [*_command(context), *_table([row for row in rows if row not in common])]
            if names := [row[0] for row in rows if row in common]:
                lines += paragraph(f"Common options: {', '.join(names)}.")
    return "\n".join(lines).rstrip() + "\n"


def contexts(context: click.Context) -> Iterator[click.Context]:
    """Yield the contexts of a command, if it does something, and of all commands in it."""
    command = context.command
    if not isinstance(command, click.Group) or command.invoke_without_command:
        yield context
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            found = command.get_command(context, name)
            assert found is not None
            yield from contexts(click.Context(found, info_name=name, parent=context))


def _command(context: click.Context) -> list[str]:
    command = context.command
    usage = " ".join([context.command_path, *command.collect_usage_pieces(context)])
    paragraphs = inspect.cleandoc((command.help or "").replace("\b", "")).split("\n\n")
    examples = inspect.cleandoc((command.epilog or "").replace("\b\n", "")).removeprefix("Examples:")
    return [
        f"### `{context.command_path}`",
        "",
        "```text",
        usage,
        *inspect.cleandoc(examples).splitlines(),
        "```",
        "",
        *(line for each in paragraphs for line in paragraph(each)),
    ]


def _table(rows: Sequence[Row]) -> list[str]:
    found = [f"| {' | '.join(row)} |" for row in rows]
    return [*_TABLE, *found, ""] if found else []


def _options(context: click.Context) -> list[Row]:
    """The rows of the options of a command."""
    options = [option for option in context.command.params if isinstance(option, click.Option)]
    return [_row(*record) for option in options if (record := option.get_help_record(context)) is not None]


def _row(names: str, about: str) -> Row:
    extra = [item for group in _EXTRA.findall(about) for item in group.split("; ")]
    given = {key: value for key, _, value in (item.partition(": ") for item in extra) if value}
    rest = [item for item in extra if ": " not in item]
    meaning = " ".join([_EXTRA.sub("", about).strip(), *(f"({item})" for item in rest)])
    default = given.get("default", "")
    return tuple(_cell(part) for part in (f"`{names}`", meaning, f"`{given['env']}`" if "env" in given else "", default))


def _cell(part: str) -> str:
    """A cell of a table, without the directories of this user."""
    for pattern, shown in _DIRECTORIES.items():
        part = re.sub(pattern, shown, part)
    return part.replace("|", r"\|")
