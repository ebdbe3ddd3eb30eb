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
    from terminalkit.config.flags import SettingFlags, SettingSources, setting_for
    from terminalkit.config.loading import SettingsError, SettingsSource, parse_duration, setting, settings, show_duration
    from terminalkit.config.running import announced_system, checkout_root
    from terminalkit.coroutine import DURATION, Choice, Function, command, completes, completion_command, examples, lazily
    from terminalkit.entry import enter
    from terminalkit.failure import ExitCode, Failure, command_name
    from terminalkit.invocation import Invocation, begin_invocation
    from terminalkit.logs import configure_logs
    from terminalkit.program import Command, Program, completion_variable
    from terminalkit.service_commands import PRIVATE, check_default_broker, config_command, run_program, serve_command
else:
    __getattr__ = facade(
        __name__,
        {
            "terminalkit.config.flags": "SettingFlags SettingSources setting_for",
            "terminalkit.config.loading": "SettingsError SettingsSource parse_duration setting settings show_duration",
            "terminalkit.config.running": "announced_system checkout_root",
            "terminalkit.coroutine": "DURATION Choice Function command completes completion_command examples lazily",
            "terminalkit.entry": "enter",
            "terminalkit.failure": "ExitCode Failure command_name",
            "terminalkit.invocation": "Invocation begin_invocation",
            "terminalkit.logs": "configure_logs",
            "terminalkit.program": "Command Program completion_variable",
            "terminalkit.service_commands": "PRIVATE check_default_broker config_command run_program serve_command",
        },
    )

__all__ = [
    "DURATION", "PRIVATE", "Choice", "Command", "ExitCode", "Failure", "Function", "Invocation", "Program", "SettingFlags",
    "SettingSources", "SettingsError", "SettingsSource", "announced_system", "begin_invocation", "check_default_broker",
    "checkout_root", "command", "command_name", "completes", "completion_command", "completion_variable", "config_command",
    "configure_logs", "enter", "examples", "lazily", "parse_duration", "run_program", "serve_command", "setting", "setting_for",
    "settings", "show_duration",
]  # fmt: skip
