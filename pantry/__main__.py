"""The program `pantry`, also as `python -m pantry`."""

import sys

from terminalkit import enter


def main() -> int:
    """Run the program with the arguments of the process and return its exit code."""
    return enter("pantry.cli")


if __name__ == "__main__":
    sys.exit(main())
