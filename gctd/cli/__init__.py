"""The command line of the tracker."""

from gctd.cli.root import main

__all__ = ["main"]
