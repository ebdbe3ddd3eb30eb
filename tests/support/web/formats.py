"""Hooks of Schemathesis (SCHEMATHESIS_HOOKS) for every service: cursors, and keys that are used once.

`formats_gctd` and `formats_pantry` have the hooks of one service, with the formats that its document names.
"""

from __future__ import annotations

import itertools
import os
import re
from typing import Any

import schemathesis
from hypothesis import strategies as st

from httpkit.edge import KEY_HEADER, KEY_PATTERN
from httpkit.messages.binding import encode_cursor

_USES = itertools.count()

NAMES = st.from_regex(r"[A-Za-z0-9][A-Za-z0-9_-]{0,20}", fullmatch=True)
POSITIONS = st.integers(0, 1_000)

schemathesis.openapi.format("cursor", st.tuples(NAMES, NAMES).map(encode_cursor))
schemathesis.openapi.format("position-cursor", st.builds(lambda a, b: encode_cursor((a, b)), POSITIONS, POSITIONS))
schemathesis.openapi.format("sequence-cursor", POSITIONS.map(lambda sequence: encode_cursor((sequence,))))


@schemathesis.hook
def filter_case(_: schemathesis.HookContext, case: schemathesis.Case[Any]) -> bool:
    """Leave out a case that is unsound in its formats only: the fuzzer takes any text for a violation of our formats."""
    mutations = getattr(case.meta.phase.data, "mutations", ()) if case.meta else ()
    return not mutations or any(mutation.keywords != ("format",) for mutation in mutations)


@schemathesis.hook
def before_call(_: schemathesis.HookContext, case: schemathesis.Case[Any], __: object) -> None:
    """Make a sound idempotency key one that no other request has: with another request it would rightly be refused."""
    key = case.headers.get(KEY_HEADER)
    if key is not None and re.fullmatch(KEY_PATTERN, key):
        case.headers[KEY_HEADER] = f"{key[:200]}-{os.getpid()}-{next(_USES)}"
