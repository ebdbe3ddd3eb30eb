"""Support for tests of services: given/when/then, and a log in memory."""

from __future__ import annotations

from eventlog.facade import facade

TYPE_CHECKING = False  # without `typing`, which takes time to import: see `terminalkit.entry`
if TYPE_CHECKING:
    from eventlog.testing.memory import MemoryLog
    from eventlog.testing.scenario import given
else:
    __getattr__ = facade(
        __name__,
        {
            "eventlog.testing.memory": "MemoryLog",
            "eventlog.testing.scenario": "given",
        },
    )

__all__ = [
    "MemoryLog", "given",
]  # fmt: skip
