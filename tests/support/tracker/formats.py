"""Hooks of Schemathesis for the tracker: values of the formats that its document names."""

from __future__ import annotations

import os
from typing import Any

import schemathesis
from hypothesis import strategies as st

from tests.support.web.formats import NAMES

_PATH = st.lists(NAMES, min_size=1, max_size=3).map("/".join)
_KNOWN = os.environ["KNOWN_REPOSITORY"]

# Other addresses are missing paths on this disk: no test asks a host of the internet.
schemathesis.openapi.format("repository-url", st.just(_KNOWN) | NAMES.map(f"{_KNOWN}-{{}}".format))
schemathesis.openapi.format("git-ref", _PATH | st.from_regex(r"[0-9a-f]{40}", fullmatch=True))
schemathesis.openapi.format("project-path", st.just(".") | _PATH)
schemathesis.openapi.format("go-flags", st.sampled_from(["", "-short", "-race -count=2", "-tags=a,b -timeout 5m"]))
schemathesis.openapi.format("go-crap-flag", st.sampled_from(["--threshold=20", "--min=3", "--exclude=gen", "--include-tests"]))
schemathesis.openapi.format("function-key", st.sampled_from(["Add", "Sums.Sub"]) | NAMES)
_BLOCK = st.builds(
    "{}/a.go:{}.1,{}.9 1 {}".format, st.just("example.com/."), st.integers(1, 9), st.integers(10, 99), st.integers(0, 9)
)
_BLOCKS = st.lists(_BLOCK, min_size=1, max_size=3, unique=True)
schemathesis.openapi.format("coverage-profile", _BLOCKS.map(lambda lines: "\n".join(["mode: count", *lines, ""])))
schemathesis.openapi.format("go-duration", st.integers(1, 1440).map("{}m".format) | st.sampled_from(["1s", "1h30m", "24h"]))


@schemathesis.hook
def filter_case(context: schemathesis.HookContext, case: schemathesis.Case[Any]) -> bool:
    """Leave out two bases at once, and `once` without its ref: the schema of one value cannot refer to another."""
    query = case.query or {}
    body = case.body if isinstance(case.body, dict) else {}
    return not ("from" in query and "base" in query) and not (body.get("once") is True and body.get("ref") is None)
