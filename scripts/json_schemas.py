"""The JSON Schemas of the documents that the programs write with `--json`: docs/reference/json-documents.

`python scripts/json_schemas.py` writes a file for each program. It refuses to drop a field: within a major version, fields are
only added. Documents of an API have the schema of the API's description. tests/project/test_json_schemas.py compares the files
with the code.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from reference.json_documents import functions, ledger, readmodels, tracker

FOLDER = Path(__file__).parents[1] / "docs" / "reference" / "json-documents"

PROGRAMS = {"gctd": tracker, "pantry": ledger, "projections": readmodels, "graphql-fn": functions}
"""The module that has the documents of a program."""


def file_of(program: str) -> Path:
    """Return the file with the schemas of a program."""
    return FOLDER / f"{program}.json"


def text(program: str) -> str:
    """Return the text of the file of a program."""
    return json.dumps(PROGRAMS[program].schemas(), indent=1, sort_keys=True, ensure_ascii=False) + "\n"


def lost(before: Any, after: Any, path: str = "") -> Iterator[str]:
    """Yield the fields that a schema had and has no more."""
    if not isinstance(before, Mapping):
        return
    there = after if isinstance(after, Mapping) else {}
    for key, value in before.items():
        here = f"{path}/{key}"
        if key not in there and path.rpartition("/")[2] in {"properties", "documents"}:
            yield here
        else:
            yield from lost(value, there.get(key), here)


def main() -> None:
    """Write the files; end the program if a field has gone without `--major`."""
    for program, module in PROGRAMS.items():
        file = file_of(program)
        gone = list(lost(json.loads(file.read_text(encoding="utf-8")), module.schemas())) if file.exists() else []
        if gone and "--major" not in sys.argv:
            sys.exit(f"fields of {program} have gone, which only a major version may do (--major): {', '.join(gone)}")
        file.write_text(text(program), encoding="utf-8")


if __name__ == "__main__":
    main()
