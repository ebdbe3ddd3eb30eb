"""An engine as a separate process: `python -m gctd.engines <order> <report>`, both paths of JSON files.

A worker runs it under the same limits as everything that touches a repository: hostile source can make the parser need a lot of
memory, and an analysis that is cancelled has to end.
"""

from __future__ import annotations

import gc
import sys
from pathlib import Path
from typing import Any

import attrs
import msgspec

from gctd.engines.engine import EngineFailed, EngineInput
from gctd.engines.registry import engine_named
from gctd.engines.report import encode

FAILED = 3
"""Exit code if the engine fails with a reason, which is on standard error."""


@attrs.frozen(kw_only=True)
class EngineRequest:
    """The name of an engine, and its input."""

    engine: str
    given: EngineInput

    def written(self) -> bytes:
        """Return the order as JSON."""
        return msgspec.json.encode(self, enc_hook=str)

    @classmethod
    def read(cls, text: bytes) -> EngineRequest:
        """Parse an order from JSON. Raises msgspec.DecodeError."""
        return msgspec.json.decode(text, type=cls, dec_hook=_path)


def _path(kind: type, value: Any) -> Any:
    assert kind is Path
    return Path(value)


def main(order: Path, report: Path) -> int:
    """Carry out an order. Return the exit code."""
    wanted = EngineRequest.read(order.read_bytes())
    try:
        found = engine_named(wanted.engine).analyse(wanted.given)
    except EngineFailed as error:
        sys.stderr.write(f"{error}\n")
        return FAILED
    report.write_bytes(encode(found))
    return 0


if __name__ == "__main__":
    gc.disable()  # the process is short-lived
    sys.exit(main(Path(sys.argv[1]), Path(sys.argv[2])))
