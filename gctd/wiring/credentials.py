"""The operator's credentials for private repositories and modules: a file in the form of netrc(5)."""

from __future__ import annotations

import netrc
from collections.abc import Mapping
from pathlib import Path

from gctd.domain.errors import BadInput

FIELD = "credentials_file"


def read_credentials(path: Path | None) -> Mapping[str, str]:
    """Return host to `user:password`; an empty mapping without a file.

    Raises BadInput, without the file's contents in its text, if the file cannot be used: also if others than its owner may read
    it, and for a `default` entry, which would send its password to every host.
    """
    if path is None:
        return {}
    try:
        others = path.stat().st_mode & 0o077
        machines = netrc.netrc(path).hosts
    except netrc.NetrcParseError as error:
        raise BadInput(FIELD, f"{path}: line {error.lineno} cannot be read") from None
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput(FIELD, f"{path} cannot be read: {getattr(error, 'strerror', 'not UTF-8')}") from None
    if others:
        raise BadInput(FIELD, f"others than its owner may read or write {path}: chmod 600 it")
    if "default" in machines:
        raise BadInput(FIELD, f"{path} has a default entry, whose password would go to every host: name each host (machine)")
    return {host.lower(): f"{login}:{password}" for host, (login, _, password) in machines.items() if password}
