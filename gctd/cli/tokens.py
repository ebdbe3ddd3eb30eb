"""`gctd token create | list | revoke`."""

from __future__ import annotations

from gctd.cli.options import FLAGS
from servicekit import token_commands
from terminalkit import lazily

token = token_commands(FLAGS, "gctd", lazily("gctd.serve:SERVICE"))
