"""`graphql-fn template`: the folder for the function platform."""

from __future__ import annotations

from pathlib import Path

import click

from terminalkit import ExitCode, Invocation, command, examples


@click.command(epilog=examples("graphql-fn template function && cd function && faas-cli up -f stack.yaml"))
@click.argument("directory", type=click.Path(file_okay=False, path_type=Path))
@command()
async def template(invocation: Invocation, *, directory: Path) -> int:
    """Write into DIRECTORY what deploys the function on OpenFaaS: stack.yaml, and the folder `graphql` with its handler.

    It has all that the function needs of this program; libraries are installed when the platform builds it.
    """
    from graphql_fn.deployment import write_folder  # noqa: PLC0415 - slow

    found = [str(file.relative_to(directory)) for file in write_folder(directory, distribution="gctd")]
    if invocation.output.json:
        invocation.output.document(found)
    for name in [] if invocation.output.json else found:
        invocation.output.line(name)
    invocation.output.note(f"deploy it with: cd {directory} && faas-cli up -f stack.yaml")
    return ExitCode.OK
