"""The program `projections`, also as `python -m projections`."""

import sys

from terminalkit.entry import enter


def main() -> int:
    """Run the program with the arguments of the process and return its exit code."""
    return enter("projections.cli")


if __name__ == "__main__":
    sys.exit(main())
