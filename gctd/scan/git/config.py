"""Settings of git that hold a secret: in its environment, since the list of processes shows its command line."""

from __future__ import annotations

import base64
from collections.abc import Mapping


def config_variables(values: Mapping[str, str]) -> dict[str, str]:
    """The environment variables that set these keys (git-config(1), GIT_CONFIG_COUNT)."""
    if not values:
        return {}
    variables = {"GIT_CONFIG_COUNT": str(len(values))}
    for number, (key, value) in enumerate(values.items()):
        variables |= {f"GIT_CONFIG_KEY_{number}": key, f"GIT_CONFIG_VALUE_{number}": value}
    return variables


def basic_authorization(credential: str) -> str:
    """The header that goes with `user:password` (RFC 7617)."""
    return f"Authorization: Basic {base64.b64encode(credential.encode()).decode()}"
