"""The engine `native-compat` has the numbers of the program go-crap to the last bit, on a host that has the program."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from gctd.domain.options import parse_crap_args
from gctd.engines.native import NativeEngine
from gctd.engines.report import raw_output
from tests.gctd.engines.modules import PROFILE, engine_input, write_gocrap_fixture
from tests.support.tracker.gocrap import PROGRAM, numbers, scan

if PROGRAM is not None:

    @pytest.mark.real
    @pytest.mark.parametrize("flags", [(), ("--threshold=5.5",), ("--exclude=String", "--min=2.5"), ("--missing=optimistic",)])
    def test_native_compat_gives_its_numbers_to_the_last_bit(tmp_path: Path, flags: tuple[str, ...]) -> None:
        module = tmp_path / "checkout"
        write_gocrap_fixture(module)
        theirs = scan(module, (module / PROFILE).read_bytes(), flags)
        given = engine_input(module, options=parse_crap_args(flags))
        ours = msgspec.to_builtins(raw_output(NativeEngine(compat=True).analyse(given)))
        assert numbers(ours) == numbers(theirs)
        assert ours["summary"] == theirs["summary"]
        assert ours["summary"]["total_funcs"] > 0
