"""Common parts of the command lines of all services: output, options, failures, exit codes, signals, completion.

PROGRAM = Program(name="bank", summary="...", examples="...", commands={
    "serve": Command("bank.cli.serve", "Run the bank."),
})

@click.command(epilog=examples("bank list", ...))
@command()
async def list_(invocation: Invocation) -> int:
    invocation.output.table([Column("NAME", "id")], rows)
    return ExitCode.OK
"""

from __future__ import annotations

from eventlog.facade import facade

TYPE_CHECKING = False  # without `typing`, which takes time to import: see `terminalkit.entry`
if TYPE_CHECKING:
    from terminalkit.commands.command import examples
    from terminalkit.commands.program import Command, Program
    from terminalkit.commands.service_commands import config_command, serve_command
    from terminalkit.config.fields import setting, settings
    from terminalkit.config.flags import SettingFlags, SettingSources
    from terminalkit.config.loading import LoadedSettings, SettingsError, SettingsSource
    from terminalkit.display.output import Output
    from terminalkit.display.table import Column
    from terminalkit.exits import ExitCode
    from terminalkit.failure import Failure
    from terminalkit.runtime.invocation import Invocation

__all__ = [
    "Column",
    "Command",
    "ExitCode",
    "Failure",
    "Invocation",
    "LoadedSettings",
    "Output",
    "Program",
    "SettingFlags",
    "SettingSources",
    "SettingsError",
    "SettingsSource",
    "config_command",
    "examples",
    "serve_command",
    "setting",
    "settings",
]

__getattr__ = facade(
    __name__,
    {
        "terminalkit.commands.program": "Command Program",
        "terminalkit.runtime.invocation": "Invocation",
        "terminalkit.exits": "ExitCode",
        "terminalkit.display.output": "Output",
        "terminalkit.display.table": "Column",
        "terminalkit.commands.command": "examples",
        "terminalkit.failure": "Failure",
        "terminalkit.config.fields": "setting settings",
        "terminalkit.config.loading": "LoadedSettings SettingsError SettingsSource",
        "terminalkit.config.flags": "SettingFlags SettingSources",
        "terminalkit.commands.service_commands": "config_command serve_command",
    },
)
