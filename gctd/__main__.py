"""The program `gctd`, also as `python -m gctd`."""

import sys

from terminalkit import enter


def main() -> int:
    """Run the program with the arguments of the process and return its exit code."""
    return enter("gctd.cli")


if __name__ == "__main__":
    sys.exit(main())
