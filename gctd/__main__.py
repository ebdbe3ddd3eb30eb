"""`python -m gctd` is the program `gctd`."""

import sys

from gctd.cli import main

sys.exit(main())
