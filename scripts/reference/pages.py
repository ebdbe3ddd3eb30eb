"""The files of the reference that are made from the code. They are in the site of the documentation, and not in git."""

from __future__ import annotations

import json
from collections.abc import Mapping

from reference import commands, names, routes, stored
from reference.json_documents import PROGRAMS


def pages() -> Mapping[str, str]:
    """Return the text of each file by its name."""
    return {
        "commands.md": commands.text(),
        "routes.md": routes.text(),
        "events-and-tables.md": stored.text(),
        **{f"{package}.md": names.text(package) for package in reversed(names.PACKAGES)},
        **{f"{program}.json": _schemas(program) for program in PROGRAMS},
    }


def _schemas(program: str) -> str:
    return json.dumps(PROGRAMS[program].schemas(), indent=1, sort_keys=True, ensure_ascii=False) + "\n"
