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
    from terminalkit.commands.command import DURATION, Choice, Function, command, examples
    from terminalkit.commands.completion import completes, completion_command
    from terminalkit.commands.program import Command, Program, variable
    from terminalkit.commands.service_commands import config_command, serve_command
    from terminalkit.config.checkout import checkout
    from terminalkit.config.fields import parse_duration, setting, settings, show_duration
    from terminalkit.config.flags import SettingFlags, SettingSources, setting_for
    from terminalkit.config.loading import SettingsError, SettingsSource
    from terminalkit.config.running import announced
    from terminalkit.entry import enter
    from terminalkit.exits import ExitCode
    from terminalkit.failure import Failure, name_of
    from terminalkit.logs import configure_logs
    from terminalkit.runtime.coroutine import lazily
    from terminalkit.runtime.default_broker import check_default_broker
    from terminalkit.runtime.invocation import Invocation, begin
    from terminalkit.runtime.serving import PRIVATE, run_program
else:
    __getattr__ = facade(
        __name__,
        {
            "terminalkit.commands.command": "DURATION Choice Function command examples",
            "terminalkit.commands.completion": "completes completion_command",
            "terminalkit.commands.program": "Command Program variable",
            "terminalkit.commands.service_commands": "config_command serve_command",
            "terminalkit.config.checkout": "checkout",
            "terminalkit.config.fields": "parse_duration setting settings show_duration",
            "terminalkit.config.flags": "SettingFlags SettingSources setting_for",
            "terminalkit.config.loading": "SettingsError SettingsSource",
            "terminalkit.config.running": "announced",
            "terminalkit.entry": "enter",
            "terminalkit.exits": "ExitCode",
            "terminalkit.failure": "Failure name_of",
            "terminalkit.logs": "configure_logs",
            "terminalkit.runtime.coroutine": "lazily",
            "terminalkit.runtime.default_broker": "check_default_broker",
            "terminalkit.runtime.invocation": "Invocation begin",
            "terminalkit.runtime.serving": "PRIVATE run_program",
        },
    )

__all__ = [
    "DURATION", "PRIVATE", "Choice", "Command", "ExitCode", "Failure", "Function", "Invocation", "Program", "SettingFlags",
    "SettingSources", "SettingsError", "SettingsSource", "announced", "begin", "check_default_broker", "checkout", "command",
    "completes", "completion_command", "config_command", "configure_logs", "enter", "examples", "lazily", "name_of",
    "parse_duration", "run_program", "serve_command", "setting", "setting_for", "settings", "show_duration", "variable",
]  # fmt: skip
