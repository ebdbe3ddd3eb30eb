"""Hooks of Schemathesis for the tracker: values of the formats that its document names."""

from __future__ import annotations

import os

import schemathesis
from hypothesis import strategies as st

from tests.support.web.formats import NAMES

_PATH = st.lists(NAMES, min_size=1, max_size=3).map("/".join)
_KNOWN = os.environ["KNOWN_REPOSITORY"]

# Others are where nothing is, on this disk: no test asks a host of the internet.
schemathesis.openapi.format("repository-url", st.just(_KNOWN) | NAMES.map(f"{_KNOWN}-{{}}".format))
schemathesis.openapi.format("git-ref", _PATH | st.from_regex(r"[0-9a-f]{40}", fullmatch=True))
schemathesis.openapi.format("project-path", st.just(".") | _PATH)
schemathesis.openapi.format("go-flags", st.sampled_from(["", "-short", "-race -count=2", "-tags=a,b -timeout 5m"]))
schemathesis.openapi.format("go-crap-flag", st.sampled_from(["--threshold=20", "--min=3", "--exclude=gen", "--include-tests"]))
schemathesis.openapi.format("go-duration", st.integers(1, 1440).map("{}m".format) | st.sampled_from(["1s", "1h30m", "24h"]))
