"""The command line of the pantry."""

from pantry.cli.root import main

__all__ = ["main"]
