"""`python -m pantry` is the program `pantry`."""

import sys

from pantry.cli import main

sys.exit(main())
