"""What the programs of all services share at a terminal: output, options, failures, exit codes, signals, completion.

PROGRAM = Program(name="pantry", distribution="gctd", summary="...", examples="...", commands={
    "serve": Command("pantry.cli.service", "Run the ledger."),
})

@click.command(epilog=examples("pantry list", ...))
@command()
async def list_(invocation: Invocation) -> int:
    invocation.output.table([Column("NAME", "id")], rows)
    return ExitCode.OK
"""
