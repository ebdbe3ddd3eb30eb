"""The command line of the read side: what the read models say, what the log says, what the streams are."""

from projections.cli.root import main

__all__ = ["main"]
