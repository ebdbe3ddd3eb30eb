"""`scripts/house.py` counts lines, modules, imports and names."""

from __future__ import annotations

import runpy
from pathlib import Path

from tests.support import ROOT

HOUSE = runpy.run_path(str(ROOT / "scripts" / "house.py"))


def test_a_checkout_is_counted(tmp_path: Path) -> None:
    for name, text in {
        "eventlog/__init__.py": "",
        "eventlog/log.py": "# GCTD\n" * 61,
        "pantry/serve.py": "from eventlog import Commit\nfrom eventlog.log import Log\nfrom os import path\n",
        "gctd/serve.py": "def serve() -> None:\n    from eventlog.log import Log\n",
    }.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    size = HOUSE["package"](tmp_path, "eventlog")
    assert (size.modules, size.lines, size.small) == (2, 61, 1)
    assert HOUSE["imports"](tmp_path) == (1, 2, 1)
    assert HOUSE["names"](tmp_path)[:1] == ["eventlog/log.py:1"]
