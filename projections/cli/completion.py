"""Shell completion."""

from __future__ import annotations

from terminalkit.commands.completion import completion_command

completion = completion_command("projections", "commands and options")
