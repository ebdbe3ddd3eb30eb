"""The common part of `scripts/up` and `scripts/cluster`: set the checkout up and become the supervisor of one of them."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from bootstrap import SetUp, SetUpFailed, has_postgres
from launcher.options import parse


def start(program: str, arguments: Sequence[str]) -> None:
    """Become the supervisor, in the virtual environment; end this program where the set-up fails or is interrupted."""
    try:
        options = parse(program, arguments)
        setup = SetUp()
        setup.run("runtime", *(["postgres"] if options.postgres and not has_postgres() else []))
        command = [str(setup.python), str(setup.root / "scripts" / "supervisor.py"), program, *arguments]
        os.execve(command[0], command, setup.environment())  # noqa: S606 - becoming the program without a shell is the point
    except SetUpFailed as error:
        sys.exit(f"error: {error}")
    except KeyboardInterrupt:
        sys.exit(130)
