"""`pantry token create | list | revoke`."""

from __future__ import annotations

from pantry.cli.options import FLAGS
from servicekit import token_commands
from terminalkit import lazily

token = token_commands(FLAGS, "pantry", lazily("pantry.serve:SERVICE"))
