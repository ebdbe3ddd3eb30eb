"""Processor time of another process, as Linux counts it, without packages, since peers have private environments."""

from __future__ import annotations

import os
from pathlib import Path


def spent(pid: int) -> float:
    """Processor seconds of a process since its beginning (proc(5), fields 14 and 15)."""
    _, _, fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace").rpartition(")")
    user, system = fields.split()[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")
