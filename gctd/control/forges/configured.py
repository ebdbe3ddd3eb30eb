"""The forges that the operator configured: a file with addresses, tokens and secrets of webhooks."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

import attrs
import yaml

from gctd.domain.errors import BadInput

FIELD = "forges_file"
_KINDS = ("github", "gitlab")
_MEMBERS = frozenset({"host", "kind", "api", "token", "secrets"})
_SHORTEST_SECRET = 16


@attrs.frozen(kw_only=True)
class Forge:
    """A forge: `host` is the host of its repositories' addresses (with the port), `api` the base of its API.

    `secrets` are the secrets of its webhooks: two are valid while one replaces the other. `token` may set statuses and write
    comments.
    """

    host: str
    kind: Literal["github", "gitlab"]
    api: str
    token: str = attrs.field(repr=False)
    secrets: tuple[str, ...] = attrs.field(repr=False)


def read_forges(path: Path | None) -> Mapping[str, Forge]:
    """Return the forges of a YAML file by their hosts; none without a file.

    Raises BadInput without any content of the file if the file cannot be used: also if others than its owner may read it.
    """
    if path is None:
        return {}
    try:
        others = path.stat().st_mode & 0o077
        document = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput(FIELD, f"{path} cannot be read: {getattr(error, 'strerror', 'not UTF-8')}") from None
    except yaml.YAMLError:
        raise BadInput(FIELD, f"{path} is not YAML") from None
    if others:
        raise BadInput(FIELD, f"others than its owner may read or write {path}: chmod 600 it")
    if not isinstance(document, list):
        raise BadInput(FIELD, f"{path} must have a list of forges")
    found = [_forge(path, number, one) for number, one in enumerate(document, 1)]
    if len({forge.host for forge in found}) < len(found):
        raise BadInput(FIELD, f"{path} has two forges with the same host")
    return {forge.host: forge for forge in found}


def _forge(path: Path, number: int, given: Any) -> Forge:
    where = f"{path}: forge {number}"
    if not isinstance(given, dict) or set(given) != _MEMBERS:
        raise BadInput(FIELD, f"{where} must have exactly the members {', '.join(sorted(_MEMBERS))}")
    host, kind, api, token, secrets = (given[name] for name in ("host", "kind", "api", "token", "secrets"))
    if not all(isinstance(one, str) and one for one in (host, api, token)):
        raise BadInput(FIELD, f"{where}: host, api and token must be texts")
    if kind not in _KINDS:
        raise BadInput(FIELD, f"{where}: kind must be one of {', '.join(_KINDS)}")
    parts = urlsplit(api)
    if parts.scheme not in {"http", "https"} or not parts.hostname or parts.query or parts.fragment or parts.username:
        raise BadInput(FIELD, f"{where}: api must be an address as https://api.github.com or https://gitlab.example.com/api/v4")
    if not isinstance(secrets, list) or not secrets or not all(isinstance(one, str) for one in secrets):
        raise BadInput(FIELD, f"{where}: secrets must be a list of texts")
    if min(map(len, secrets)) < _SHORTEST_SECRET:
        raise BadInput(FIELD, f"{where}: a secret must have {_SHORTEST_SECRET} characters or more")
    return Forge(host=host.lower(), kind=kind, api=api.rstrip("/"), token=token, secrets=tuple(secrets))
