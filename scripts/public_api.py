"""The promise of a release: public names with their parameters, routes, and members of the documents of `--json`.

`python scripts/public_api.py` prints what has gone since the last release without a note in the CHANGELOG, and ends with status 1
if there is anything. `--release` writes the list of a release, docs/reference/released.txt. Before the first release there is no
list and no promise.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from reference.json_documents import PROGRAMS
from reference.names import surface
from reference.routes import operations

ROOT = Path(__file__).resolve().parents[1]
LIST = ROOT / "docs" / "reference" / "released.txt"


def promised() -> Sequence[str]:
    """Return the lines of the list."""
    routes = (f"{service} {method.upper()} {path}" for service, method, path, _ in operations())
    members = (f"{program} {line}" for program, module in PROGRAMS.items() for line in members_of(module.schemas()))
    return list(dict.fromkeys([*(member.signature for member in surface()), *routes, *members]))


def members_of(schemas: Mapping[str, Any]) -> Iterator[str]:
    """Yield the documents, and the members of their objects: `task list`, `task list: tasks.id`."""

    def members(schema: Any, name: str, inside: tuple[str, ...] = ()) -> Iterator[str]:
        if isinstance(schema, list):
            for part in schema:
                yield from members(part, name, inside)
        elif isinstance(schema, Mapping):
            for key, value in schema.items():
                if key == "$ref" and value not in inside:
                    yield from members(schemas["$defs"][value.rpartition("/")[2]], name, (*inside, value))
                elif key == "properties":
                    for member, inner in value.items():
                        path = f"{name}{'.' if ':' in name else ': '}{member}"
                        yield path
                        yield from members(inner, path, inside)
                else:
                    yield from members(value, name, inside)

    for name, document in schemas["documents"].items():
        yield name
        yield from members(document, name)


def gone(released: Sequence[str], now: Sequence[str], changelog: str) -> list[str]:
    """Return the released lines that are not there now, and that the first section of the change log does not name as code.

    A name with other parameters has gone. The note of a public name needs no package.
    """
    newest = changelog.partition("\n## [")[2].partition("\n## [")[0]
    known = set(now)
    return [line for line in released if line not in known and not re.search(_note(line), newest)]


def _note(line: str) -> str:
    name = line.partition("(")[0]
    if " " not in name:
        name = re.sub(r"^(?:[a-z_]+\.)+", "", name)
    return rf"`[^`\n]*(?<!\w){re.escape(name)}(?!\w)[^`.\n]*`"


def main() -> None:
    """Write the list of a release, or compare with the last one."""
    if "--release" in sys.argv[1:]:
        LIST.write_text("".join(f"{line}\n" for line in promised()), encoding="utf-8")
        return
    if broken := since_release():
        sys.exit("gone since the last release, without a note in CHANGELOG.md:\n" + "\n".join(broken))


def since_release() -> list[str]:
    """Return what has gone since the last release without a note."""
    released = LIST.read_text(encoding="utf-8").splitlines() if LIST.exists() else []
    return gone(released, promised(), (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"))


if __name__ == "__main__":
    main()
