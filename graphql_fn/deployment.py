"""The folder with which the function is deployed on OpenFaaS: the platform's files, and of this package what a function needs."""

from __future__ import annotations

import re
import shutil
from http import HTTPStatus
from importlib.metadata import requires
from importlib.resources import as_file, files
from pathlib import Path

from graphql_fn.core.errors import GraphqlFnError

_PARTS = ("core", "handlers")
_LIBRARIES = frozenset({"attrs", "graphql-core", "msgspec", "structlog"})


class InTheWay(GraphqlFnError):
    """There is something in the place of the folder."""

    status = HTTPStatus.CONFLICT


def write_folder(directory: Path, *, distribution: str) -> list[Path]:
    """Write the folder; gives its files. The libraries are the requirements of the installed `distribution`.

    Raises InTheWay if the directory has something in it, OSError if it cannot be written.
    """
    if directory.exists() and any(directory.iterdir()):
        raise InTheWay(f"{directory} is not empty")
    function = directory / "graphql"
    package = function / __package__
    package.mkdir(parents=True)
    with as_file(files(__package__)) as source:
        shutil.copy(source / "template" / "stack.yaml", directory)
        shutil.copy(source / "template" / "handler.py", function)
        shutil.copy(source / "__init__.py", package)
        for part in _PARTS:
            shutil.copytree(source / part, package / part, ignore=shutil.ignore_patterns("__pycache__"))
    wanted = [line for line in requires(distribution) or () if re.split(r"[^A-Za-z0-9-]", line)[0] in _LIBRARIES]
    (function / "requirements.txt").write_text("".join(f"{line}\n" for line in sorted(wanted)), encoding="utf-8")
    return sorted(file for file in directory.rglob("*") if file.is_file())
