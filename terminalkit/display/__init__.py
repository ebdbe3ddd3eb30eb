"""Output of a command: texts, tables, bars of progress."""

from __future__ import annotations

from eventlog.facade import facade

TYPE_CHECKING = False  # without `typing`, which takes time to import: see `terminalkit.entry`
if TYPE_CHECKING:
    from terminalkit.display.output import Output
    from terminalkit.display.table import NOT_MEASURED, Cell, Column, Painted, count, duration, moment, percent, printable, size
else:
    __getattr__ = facade(
        __name__,
        {
            "terminalkit.display.output": "Output",
            "terminalkit.display.table": "NOT_MEASURED Cell Column Painted count duration moment percent printable size",
        },
    )

__all__ = [
    "NOT_MEASURED", "Cell", "Column", "Output", "Painted", "count", "duration", "moment", "percent", "printable", "size",
]  # fmt: skip
