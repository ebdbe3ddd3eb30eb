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
    from terminalkit.commands.program import Command, Program, completion_variable
    from terminalkit.commands.service_commands import config_command, serve_command
    from terminalkit.config.checkout import checkout_root
    from terminalkit.config.fields import parse_duration, setting, settings, show_duration
    from terminalkit.config.flags import SettingFlags, SettingSources, setting_for
    from terminalkit.config.loading import SettingsError, SettingsSource
    from terminalkit.config.running import announced_system
    from terminalkit.entry import enter
    from terminalkit.exits import ExitCode
    from terminalkit.failure import Failure, command_name
    from terminalkit.logs import configure_logs
    from terminalkit.runtime.coroutine import lazily
    from terminalkit.runtime.default_broker import check_default_broker
    from terminalkit.runtime.invocation import Invocation, begin_invocation
    from terminalkit.runtime.serving import PRIVATE, run_program
else:
    __getattr__ = facade(
        __name__,
        {
            "terminalkit.commands.command": "DURATION Choice Function command examples",
            "terminalkit.commands.completion": "completes completion_command",
            "terminalkit.commands.program": "Command Program completion_variable",
            "terminalkit.commands.service_commands": "config_command serve_command",
            "terminalkit.config.checkout": "checkout_root",
            "terminalkit.config.fields": "parse_duration setting settings show_duration",
            "terminalkit.config.flags": "SettingFlags SettingSources setting_for",
            "terminalkit.config.loading": "SettingsError SettingsSource",
            "terminalkit.config.running": "announced_system",
            "terminalkit.entry": "enter",
            "terminalkit.exits": "ExitCode",
            "terminalkit.failure": "Failure command_name",
            "terminalkit.logs": "configure_logs",
            "terminalkit.runtime.coroutine": "lazily",
            "terminalkit.runtime.default_broker": "check_default_broker",
            "terminalkit.runtime.invocation": "Invocation begin_invocation",
            "terminalkit.runtime.serving": "PRIVATE run_program",
        },
    )

__all__ = [
    "DURATION", "PRIVATE", "Choice", "Command", "ExitCode", "Failure", "Function", "Invocation", "Program", "SettingFlags",
    "SettingSources", "SettingsError", "SettingsSource", "announced_system", "begin_invocation", "check_default_broker",
    "checkout_root", "command", "command_name", "completes", "completion_command", "completion_variable", "config_command",
    "configure_logs", "enter", "examples", "lazily", "parse_duration", "run_program", "serve_command", "setting", "setting_for",
    "settings", "show_duration",
]  # fmt: skip
