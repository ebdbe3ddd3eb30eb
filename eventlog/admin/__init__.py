"""Administration of a server: declared streams, changes that apply them, backups."""

from __future__ import annotations

from eventlog.facade import facade

TYPE_CHECKING = False  # without `typing`, which takes time to import: see `terminalkit.entry`
if TYPE_CHECKING:
    from eventlog.admin.declarations import Declarations, load_declarations
    from eventlog.admin.reconcile import NoRoom, apply_declarations, plan_changes
else:
    __getattr__ = facade(
        __name__,
        {
            "eventlog.admin.declarations": "Declarations load_declarations",
            "eventlog.admin.reconcile": "NoRoom apply_declarations plan_changes",
        },
    )

__all__ = [
    "Declarations", "NoRoom", "apply_declarations", "load_declarations", "plan_changes",
]  # fmt: skip
