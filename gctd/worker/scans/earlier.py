"""Analyses that need not be repeated: one commit, measured in one way, has one analysis.

The key of an analysis has all inputs of its numbers. The blob store maps the key to the analysis. An analysis is stored as
soon as it is made. Its report and its profile are stored by then.
"""

from __future__ import annotations

from datetime import UTC, datetime
from hashlib import sha256

import attrs
import msgspec

from eventlog import BlobMissing
from gctd.broker.blobs import Blobs
from gctd.domain.analysis import Analysis, analysis_id
from gctd.domain.options import parse_crap_args, parse_go_flags
from gctd.domain.repo.config import go_test_flags
from gctd.domain.task.state import Task


@attrs.frozen(kw_only=True)
class Circumstances:
    """Conditions of a worker's analyses: engine with its version, Go, platform, sandbox, network of tests, `store_source`.

    `cgo`: C code is built.
    """

    engine: str
    engine_version: str
    go_version: str
    platform: str
    cgo: bool
    sandbox: str
    test_network: bool
    store_source: str


@attrs.frozen(kw_only=True)
class _Made:
    """An analysis, the task that made it, and when."""

    task: str
    at: datetime
    analysis: Analysis


class Earlier:
    """Earlier analyses in the blob store."""

    def __init__(self, blobs: Blobs) -> None:
        self._blobs = blobs

    async def find(self, task: Task, commit_sha: str, circumstances: Circumstances) -> Analysis | None:
        """Return the analysis of a commit that was made in these circumstances since `task.reuse_since`.

        None: there is none, or one of its bodies is gone. Raises Unavailable.
        """
        if task.reuse_since is None:
            return None
        try:
            ref = await self._blobs.resolve(_name(task, commit_sha, circumstances))
            if ref is None:
                return None
            made = msgspec.json.decode(await self._blobs.get(ref.digest), type=_Made)
            for body in (made.analysis.report, made.analysis.profile, made.analysis.tests, made.analysis.sources):
                if body is not None:
                    await self._blobs.get(body.digest)
        except (BlobMissing, msgspec.DecodeError):
            return None
        if made.at < task.reuse_since:
            return None
        return attrs.evolve(made.analysis, reused_from=made.task)

    async def keep(self, task: Task, circumstances: Circumstances, analysis: Analysis) -> None:
        """Store an analysis under its key; the last one counts. Raises Unavailable."""
        made = _Made(task=task.id, at=datetime.now(UTC), analysis=analysis)
        stored = await self._blobs.put(msgspec.json.encode(made))
        await self._blobs.link(_name(task, analysis.commit_sha, circumstances), stored)


def _name(task: Task, commit_sha: str, circumstances: Circumstances) -> str:
    config = task.config
    key = (
        commit_sha,
        attrs.astuple(circumstances),
        go_test_flags(config, task.engine),
        parse_go_flags(config.go_flags or ""),
        parse_crap_args(config.crap_args or ()).argv(),
        bool(config.submodules),
    )
    return f"analyses/{analysis_id(task.repo_id, task.project)}/{sha256(repr(key).encode()).hexdigest()}"
