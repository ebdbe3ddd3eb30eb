"""Analyses that a test writes and a worker with made-up work reports: figures, functions, and their engine."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path

import attrs
import msgspec

from gctd.broker.blobs import Blobs
from gctd.domain.analysis import Analysis, Blob, CommitFacts, PackageProblem, Summary, analysis_id
from gctd.domain.task.state import Task
from gctd.engines import report as report_format
from gctd.engines.functions.sources import deflated
from gctd.engines.report import Counts, FunctionEntry, Identity, Report
from gctd.engines.score import crap, measured_summary, states_of, summarize, worst_first
from gctd.engines.state import State
from gctd.worker.scans.sources import ReadFile, ReadSources, stored_sources


@attrs.frozen(kw_only=True)
class MadeUp:
    """An analysis: `functions` maps `file:Name` or `file:Type.Name` to a CRAP value. It is written under the ref of the task.

    `measured` maps such names to complexity and coverage, from which the value follows. `more` functions are counted and not
    shown; `profile` is the text of its coverage profile. `states` maps names to state and reason; others are measured. `sources`
    maps files to their text, `lines` names to their first and last line, `bodies` names to the digest of their code. `projects`
    are the projects at the commit: an analysis of another one fails. With `reused_from` no test was run: it is the analysis of
    that task.
    """

    commit_sha: str
    functions: Mapping[str, float]
    engine: str = "fake"
    engine_version: str = "1"
    go_version: str = "go1.26.6"
    flags: tuple[str, ...] = ()
    more: int = 0
    sandbox: str = ""
    platform: str = ""
    profile: str = ""
    uncovered: tuple[PackageProblem, ...] = ()
    measured: Mapping[str, tuple[int, float]] = {}
    states: Mapping[str, tuple[str, str]] = {}
    ref: str = "main"
    sources: Mapping[str, str] = {}
    lines: Mapping[str, tuple[int, int]] = {}
    bodies: Mapping[str, str] = {}
    facts: CommitFacts | None = None
    projects: tuple[str, ...] = ()
    reused_from: str = ""

    def write(self, directory: Path, ref: str) -> None:
        """Put it where the worker finds it (FAKE_ANALYSES) when a task has this ref."""
        directory.mkdir(exist_ok=True)
        (directory / f"{ref}.json").write_bytes(msgspec.json.encode(self))

    @classmethod
    def read(cls, directory: Path, ref: str) -> MadeUp | None:
        """The analysis for a ref, if there is one."""
        file = directory / f"{ref}.json"
        return msgspec.json.decode(file.read_bytes(), type=cls) if file.is_file() else None

    async def reported(self, task: Task, blobs: Blobs) -> Analysis:
        """The result of a task, its report stored."""
        entries = worst_first(
            [
                *(_entry(place, line, crap) for line, (place, crap) in enumerate(self.functions.items(), 1)),
                *(_measured(place, line, *found) for line, (place, found) in enumerate(self.measured.items(), 1)),
            ]
        )
        entries = tuple(self._with_more(entry) for entry in entries)
        known = measured_summary(entries, 30.0)
        counted = states_of(entries, 0)
        summary = summarize([*(entry.crap for entry in entries), *(1.0,) * self.more], 30.0)
        report = Report(
            engine=self.engine,
            engine_version=self.engine_version,
            crap_version="v0.0.0",
            summary=summary,
            entries=entries,
            counts=Counts(files=1, files_skipped=0, covered_functions=len(entries), differing=0),
            measured=known,
            states=counted,
        )
        stored = await blobs.put(report_format.encode(report))
        profile = await blobs.put(self.profile.encode()) if self.profile else None
        return Analysis(
            id=analysis_id(task.repo_id, task.project),
            ref=self.ref,
            commit_sha=self.commit_sha,
            summary=Summary(**msgspec.structs.asdict(summary)),
            engine=self.engine,
            engine_version=self.engine_version,
            crap_version="v0.0.0",
            go_version=self.go_version,
            flags=self.flags,
            report=Blob(digest=stored.digest, size=stored.size),
            analyzed_at=datetime.now(UTC),
            duration_ms=12,
            sandbox=self.sandbox,
            platform=self.platform,
            profile=Blob(digest=profile.digest, size=profile.size) if profile else None,
            uncovered=self.uncovered,
            measured=Summary(**msgspec.structs.asdict(known)),
            states=dict(counted),
            sources=await self._kept(blobs),
            store_source="always" if self.sources else "never",
            projects=self.projects,
            reused_from="" if task.rescores else self.reused_from,
        )

    async def _kept(self, blobs: Blobs) -> Blob | None:
        """Store the sources as a worker does."""
        content = {path: text.encode() for path, text in self.sources.items()}
        read = {path: ReadFile(sha256(text).hexdigest(), len(text), deflated(text)) for path, text in content.items()}
        return await stored_sources(ReadSources(read, {}), read, self.facts, blobs) if read else None

    def _with_more(self, entry: FunctionEntry) -> FunctionEntry:
        name = f"{entry.file}:{entry.function}"
        state, reason = self.states.get(name, ("measured", ""))
        first, last = self.lines.get(name, (entry.line, entry.end_line))
        identity = Identity(self.bodies[name], "", 100, b"") if name in self.bodies else msgspec.UNSET
        return msgspec.structs.replace(entry, state=State(state), reason=reason, line=first, end_line=last, identity=identity)


def _measured(place: str, line: int, cyclomatic: int, coverage: float) -> FunctionEntry:
    entry = _entry(place, line, crap(cyclomatic, coverage))
    return msgspec.structs.replace(entry, cyclomatic=cyclomatic, coverage=coverage)


def _entry(place: str, line: int, crap: float) -> FunctionEntry:
    file, _, function = place.partition(":")
    receiver, _, name = function.rpartition(".")
    return FunctionEntry(
        file=file,
        package="lib",
        function=function,
        name=name,
        receiver=receiver,
        line=line,
        end_line=line,
        cyclomatic=2,
        coverage=50.0,
        stmt_coverage=None,
        crap=crap,
        state=State.MEASURED,
    )
