"""The source that a worker keeps: which files, within which bounds, and the facts of the commit."""

from __future__ import annotations

from pathlib import Path

import pytest

from gctd.broker.blobs import MemoryBlobs
from gctd.domain.analysis import CommitFacts
from gctd.engines.engine import EngineInput, EngineLimits
from gctd.engines.functions.sources import LARGEST, decode_sources, inflated
from gctd.scan.git.commit import commit_facts
from gctd.worker.scans import sources
from gctd.worker.scans.sources import ReadSources, read_sources, read_unless_never, stored_sources

FACTS = CommitFacts(author="A", at="2026-11-20T12:00:00Z", subject="s", parents=())


def given(directory: Path) -> EngineInput:
    """Return a module with a file of each kind."""
    secret = directory.parent / "secret.go"
    secret.write_text("package secret\n")
    files = {
        "a.go": "package a\n\nfunc A() {}\n",
        "same/b.go": "package a\n\nfunc A() {}\n",
        "types.go": "package a\n\ntype T int\n",
        "a_test.go": "package a\n",
        "vendor/v/v.go": "package v\n",
        "testdata/t.go": "package t\n",
        "other/go.mod": "module other\n",
        "other/o.go": "package other\n",
        "large.go": "package a // " + "x" * LARGEST,
        "notes.txt": "no source",
    }
    for name, text in files.items():
        (directory / name).parent.mkdir(parents=True, exist_ok=True)
        (directory / name).write_text(text)
    (directory / "link.go").symlink_to(secret)
    (directory / "linked").symlink_to(directory.parent)
    return EngineInput(module_dir=directory, repository=directory, module_path="example.com/a")


async def test_files_with_functions_are_kept_once_and_no_others(tmp_path: Path) -> None:
    read = read_sources(given(tmp_path / "module"))
    assert set(read.files) == {"a.go", "same/b.go", "types.go"}
    assert read.left_out == {"large.go": f"more than {LARGEST} bytes"}
    blobs = MemoryBlobs()
    ref = await stored_sources(read, {"a.go", "same/b.go", "large.go", "elsewhere.go"}, FACTS, blobs)
    assert ref is not None
    kept = decode_sources(await blobs.get(ref.digest))
    assert (set(kept.files), kept.left_out, kept.commit) == ({"a.go", "same/b.go"}, read.left_out, FACTS)
    assert len({file.blob for file in kept.files.values()}) == 1
    file = kept.files["a.go"]
    assert await stored_sources(read, {"a.go", "same/b.go", "large.go"}, FACTS, blobs) == ref
    assert inflated(await blobs.get(file.blob), file) == b"package a\n\nfunc A() {}\n"


async def test_never_reads_nothing_and_a_module_that_is_too_large_keeps_nothing(tmp_path: Path) -> None:
    module = given(tmp_path / "module")
    assert await read_unless_never(module, "never") is None
    assert await stored_sources(None, {"a.go"}, FACTS, MemoryBlobs()) is None
    bounded = EngineInput(
        module_dir=module.module_dir, repository=module.repository, module_path="m", limits=EngineLimits(files=1)
    )
    assert await read_unless_never(bounded, "always") == ReadSources({}, {})


def test_the_source_of_a_project_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "MOST", 30)
    read = read_sources(given(tmp_path / "module"))
    assert (set(read.files), set(read.left_out)) == ({"a.go"}, {"large.go", "same/b.go", "types.go"})
    assert "more than 30 bytes" in read.left_out["types.go"]


def test_a_commit_tells_its_author_and_its_parents() -> None:
    one, two = "1" * 40, "2" * 40
    head = f"tree {one}\nparent {one}\nparent {two}\nauthor Ada L <a@example.com> 1700000000 +0130\ncommitter B <b> 1 +0000\n"
    body = f"{head}\nFirst\x1b[1m\n\nmore\n"
    assert commit_facts(body.encode()) == CommitFacts(
        author="Ada L", at="2023-11-14T22:13:20Z", subject="First [1m", parents=(one, two)
    )
    for broken in (b"", b"tree 1\n\nx", b"author A <a> 999999999999 +0000\n\nx", b"author A <a> 1 +9999\n\nx"):
        assert commit_facts(broken) is None
