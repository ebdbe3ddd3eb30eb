"""The command line of the function."""

from graphql_fn.cli.root import main

__all__ = ["main"]
