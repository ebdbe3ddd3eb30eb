"""The program `graphql-fn`, also as `python -m graphql_fn`."""

import sys

from terminalkit import enter


def main() -> int:
    """Run the program with the arguments of the process and return its exit code."""
    return enter("graphql_fn.cli")


if __name__ == "__main__":
    sys.exit(main())
