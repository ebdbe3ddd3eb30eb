"""The command line of the read side: read models, the event log, and streams."""

from projections.cli.root import main

__all__ = ["main"]
