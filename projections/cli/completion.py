"""Shell completion."""

from __future__ import annotations

from terminalkit.completion import completion_command

completion = completion_command("projections", "commands and options")
