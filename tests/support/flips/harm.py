"""One random change of a file: a flipped bit, or a cut end."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path

import attrs

CUTS = 0.2
"""The share of trials that cut a file."""


class Violation(AssertionError):
    """A change that no check noticed, and that has an effect."""


@attrs.frozen
class Harm:
    """A change of one file: the bit that was flipped, or the length that is left."""

    file: str
    bit: int | None
    length: int | None

    def __str__(self) -> str:
        return f"{self.file}: " + (f"bit {self.bit} flipped" if self.bit is not None else f"cut to {self.length} bytes")


def harm(files: Sequence[Path], chance: random.Random) -> Harm:
    """Change one of some files, chosen by its size."""
    sizes = [file.stat().st_size for file in files]
    file = chance.choices(files, weights=sizes)[0]
    data = bytearray(file.read_bytes())
    if chance.random() < CUTS:
        length = chance.randrange(len(data))
        file.write_bytes(data[:length])
        return Harm(file.name, None, length)
    bit = chance.randrange(8 * len(data))
    data[bit // 8] ^= 1 << bit % 8
    file.write_bytes(data)
    return Harm(file.name, bit, None)
