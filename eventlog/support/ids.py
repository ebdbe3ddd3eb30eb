"""Random hex digits for ids, taken from the system in large pieces: asking it for each id would cost more than making it."""

from __future__ import annotations

import os

_BYTES = 16
_AT_A_TIME = 256

_ready: list[str] = []


def hex_digits() -> str:
    """32 random hex digits, as `secrets.token_hex(16)` gives them; from any thread."""
    try:
        return _ready.pop()  # one step for the interpreter: no other thread gets the same
    except IndexError:
        digits = os.urandom(_BYTES * _AT_A_TIME).hex()
        length = 2 * _BYTES
        _ready.extend(digits[start : start + length] for start in range(length, len(digits), length))
        return digits[:length]


os.register_at_fork(after_in_child=_ready.clear)  # or parent and child would make the same ids
