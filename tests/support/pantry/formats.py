"""Hooks of Schemathesis for the pantry: values of the formats that its document names."""

from __future__ import annotations

import os
from datetime import datetime
from typing import Any

import schemathesis
from hypothesis import strategies as st

from httpkit.messages.binding import encode_cursor
from pantry.domain.ean13 import check_digit
from pantry.domain.gtin import own_code
from tests.support.web.formats import POSITIONS

_KNOWN = os.environ["KNOWN_PRODUCT"]
_OTHER = st.integers(0, 10**12 - 1).map("{:012}".format)

schemathesis.openapi.format("ean13", st.just(_KNOWN) | _OTHER.map(lambda first: f"{first}{check_digit(first)}"))

schemathesis.openapi.format("gtin", st.sampled_from(["96385074", "036000291452"]) | st.integers(0, 10**12 - 1).map(own_code))

schemathesis.openapi.format(
    "page-address", st.sampled_from(["https://pantry.home:8080", "http://192.0.2.7/pantry/?view=history"])
)

schemathesis.openapi.format("category-id", st.sampled_from([os.environ["KNOWN_CATEGORY"], ""]))


@schemathesis.hook
def filter_query(context: schemathesis.HookContext, query: Any) -> bool:
    """Leave out periods that end before they begin: JSON Schema cannot compare two parameters."""
    try:
        ends = [datetime.fromisoformat(query[name]) for name in ("from", "to")]
    except (KeyError, TypeError, ValueError):
        return True
    return ends[0] <= ends[1]


schemathesis.openapi.format(
    "movement-cursor", st.builds(lambda sequence, index: encode_cursor((sequence, index)), POSITIONS, POSITIONS)
)
