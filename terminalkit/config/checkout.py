"""Whether the programs run from a checkout, which keeps its data in itself."""

from __future__ import annotations

from pathlib import Path


def checkout_root() -> Path | None:
    """Return the root of the checkout that this package is in; None if it is installed."""
    root = Path(__file__).resolve().parents[2]
    return root if (root / "scripts" / "up").is_file() else None
