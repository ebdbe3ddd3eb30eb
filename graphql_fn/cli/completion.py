"""`graphql-fn completion`: the scripts for shells."""

from __future__ import annotations

from terminalkit import completion_command

completion = completion_command("graphql-fn", "commands and options")
