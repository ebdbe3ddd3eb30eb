"""Bodies of the API's answers about one function."""

from __future__ import annotations

from typing import Literal

from gctd.control.function_search import FoundFunctions
from gctd.control.functions import FunctionDetail, FunctionHistory, FunctionPoint
from gctd.domain.analysis import CommitFacts
from gctd.engines.functions.advice import Advice, Kind
from gctd.engines.functions.history import Change, LastChange
from gctd.engines.state import State
from gctd.http.bodies import body_of
from gctd.scan.hosts.links import link
from httpkit import member, message


@message
class BlockBody:
    """A piece of code that runs as a whole. Lines and columns count from 1, columns in bytes."""

    start_line: int = member()
    start_column: int = member()
    end_line: int = member()
    end_column: int = member(description="after the last byte")
    statements: int = member()
    covered: bool = member()
    runs: int | None = member(description="times that it ran; null if the profile does not count")
    parent: int | None = member(description="index of the block that runs before it whenever it runs")


@message
class BranchBody:
    """A place that adds one to the complexity."""

    line: int = member()
    column: int = member(description="in bytes, from 1")
    token: str = member(description="if, for, case, && or ||")


@message
class SourceBody:
    """Lines of the file of a function."""

    first: int = member(description="number of the first line")
    lines: tuple[str, ...] = member()
    marks: str = member(description="one character for each line: `+` covered, `-` not covered, `~` partly, space: no code")
    total: int = member(description="lines of the file")


@message
class StepBody:
    """A test that is needed: it runs the block `target`, and with it all uncovered blocks on the way."""

    target: int = member(description="index of a block")
    blocks: tuple[int, ...] = member(description="indexes of the newly covered blocks, the outermost first")
    crap: float = member(description="the value after this step and the steps before it, at most")


@message
class AdviceBody:
    """The way to a value of at most the threshold."""

    kind: Kind = member(
        description="none: it is not over it. cover: the steps are enough. split: the complexity alone is over it"
    )
    needed: float | None = member(description="least coverage (per cent of blocks); null if none is enough")
    blocks: int = member(description="blocks to cover")
    steps: tuple[StepBody, ...] = member(description="at most 50")
    crap: float = member(description="the value after all steps; for split the value with full coverage")
    more: int = member(description="blocks to cover after the steps, if there are more than 50 steps")
    parts: int | None = member(
        description="divided into this number of equal functions, no part is over the threshold without tests; null: impossible"
    )

    @classmethod
    def of(cls, advice: Advice) -> AdviceBody:
        """Return the body of an advice."""
        return body_of(cls, advice, steps=tuple(body_of(StepBody, one) for one in advice.steps))


@message
class FunctionBody:
    """A function of an analysis."""

    id: str = member(description="id of all analyses of the project")
    task_id: str = member()
    repo_id: str = member()
    repo_url: str = member()
    project: str = member()
    ref: str = member()
    commit_sha: str = member()
    analyzed_at: str = member(description="RFC 3339, UTC")
    key: str = member(description="names the function at any commit")
    others: tuple[str, ...] = member(description="keys of functions with the same name in the same package")
    file: str = member(description="relative to the project")
    package: str = member()
    function: str = member(description="receiver and name")
    line: int = member()
    end_line: int = member()
    cyclomatic: int = member()
    coverage: float | None = member(description="of blocks, in per cent; null if unknown")
    stmt_coverage: float | None = member(description="of statements, in per cent; null if unknown")
    crap: float = member()
    threshold: float = member(description="the value above which a function is risky")
    state: State = member(description="state of the measurement")
    reason: str = member(description="cause of the state; empty if it is measured")
    link: str | None = member(description="address of the function on the repository's host")
    license: str = member(description="license of the repository; empty if unknown")
    source: SourceBody | None = member()
    source_reason: str = member(description="why there is no source; else empty")
    blocks: tuple[BlockBody, ...] = member(description="in order of their start")
    blocks_reason: str = member(description="why there are no blocks; else empty")
    branches: tuple[BranchBody, ...] = member(description="empty without source")
    advice: AdviceBody | None = member()
    advice_reason: str = member(description="why there is no advice; else empty")

    @classmethod
    def of(cls, looked: FunctionDetail, source: str | None) -> FunctionBody:
        """Return the body of a function. `source` is the template of `Links.source`."""
        analysis, entry, explained = looked.analysis, looked.entry, looked.explained
        blocks = zip(explained.blocks, explained.parents, strict=True)
        return body_of(
            cls,
            analysis,
            id=analysis.analysis_id,
            key=looked.key,
            others=looked.others,
            file=entry.file,
            package=entry.package,
            function=entry.function,
            line=entry.line,
            end_line=entry.end_line,
            cyclomatic=entry.cyclomatic,
            coverage=entry.coverage,
            stmt_coverage=entry.stmt_coverage,
            crap=entry.crap,
            threshold=looked.threshold,
            state=State(entry.state),
            reason=entry.reason,
            link=link(source, entry.file, entry.line),
            license=analysis.metadata.license,
            source=None if explained.shown is None else body_of(SourceBody, explained.shown),
            source_reason=looked.source_reason,
            blocks=tuple(
                BlockBody(
                    start_line=block.start_line,
                    start_column=block.start_col,
                    end_line=block.end_line,
                    end_column=block.end_col,
                    statements=block.statements,
                    covered=block.covered,
                    runs=block.count if looked.counts else None,
                    parent=parent,
                )
                for block, parent in blocks
            ),
            blocks_reason=explained.blocks_reason,
            branches=tuple(body_of(BranchBody, one) for one in explained.branches),
            advice=None if explained.advice is None else AdviceBody.of(explained.advice),
            advice_reason=explained.advice_reason,
        )


@message
class FunctionPointBody:
    """A function in one analysis."""

    task_id: str = member()
    commit_sha: str = member()
    analyzed_at: str = member(description="RFC 3339, UTC")
    key: str = member(description="key of the function then")
    file: str = member()
    line: int = member()
    function: str = member(description="receiver and name")
    crap: float = member()
    cyclomatic: int = member()
    coverage: float | None = member(description="of blocks, in per cent; null if unknown")
    state: State = member()
    changes: tuple[Change, ...] | None = member(
        description="from the analysis before it: added, code, moved (file or name), coverage; null: that one is not known"
    )

    @classmethod
    def of(cls, at: FunctionPoint) -> FunctionPointBody:
        """Return the body of a point."""
        return body_of(
            cls,
            at.entry,
            task_id=at.analysis.task_id,
            commit_sha=at.analysis.commit_sha,
            analyzed_at=at.analysis.analyzed_at,
            key=at.key,
            state=State(at.entry.state),
            changes=at.changes,
        )


@message
class LastChangeBody:
    """The last change of the code of a function, comments and white space aside."""

    kind: Literal["commit", "between", "unchanged", "unknown"] = member(
        description="commit: it is of the commit `after`. between: it is between two analysed commits. unchanged: the code is the"
        " same since `before` at least. unknown: an analysis does not have the content"
    )
    added: bool = member(description="the function itself is new")
    before: str = member(description="the last analysed commit before the change; for unchanged the oldest one")
    after: str = member(description="the first analysed commit with the change; else empty")
    commit: CommitFacts | None = member(description="author, time and subject of `after`, if the change is of this commit")

    @classmethod
    def of(cls, change: LastChange) -> LastChangeBody:
        """Return the body of a change."""
        return cls(kind=change.kind, added=change.added, before=change.before, after=change.after, commit=change.facts)


@message
class FunctionHistoryBody:
    """The values of a function in the analyses of its branch."""

    points: tuple[FunctionPointBody, ...] = member(description="newest first")
    cut: bool = member(description="older analyses exist, or an older report does not show the function")
    last_change: LastChangeBody = member()

    @classmethod
    def of(cls, history: FunctionHistory) -> FunctionHistoryBody:
        """Return the body of a history."""
        return cls(
            points=tuple(map(FunctionPointBody.of, history.points)),
            cut=history.cut,
            last_change=LastChangeBody.of(history.last_change),
        )


@message
class FoundFunctionBody:
    """A function of the latest analysis of a project."""

    id: str = member(description="of the analyses of the project")
    repo_url: str = member()
    project: str = member()
    key: str = member(description="names the function, as in `/api/repos/{id}/functions/{key}`")
    function: str = member()
    file: str = member()
    line: int = member()
    crap: float = member()
    state: str = member(description="state of its measurement")


@message
class FoundFunctionsBody:
    """The result of a search for functions."""

    functions: tuple[FoundFunctionBody, ...] = member(
        description="the same name first, in the same case before another, then by risk"
    )
    searched: int = member(description="number of projects whose latest analyses were searched")
    left_out: int = member(description="number of projects that were not searched: for lack of time, or without a stored report")

    @classmethod
    def of(cls, found: FoundFunctions) -> FoundFunctionsBody:
        """Return the result of a search."""
        return cls(
            functions=tuple(
                body_of(
                    FoundFunctionBody,
                    one.entry,
                    id=one.analysis.analysis_id,
                    repo_url=one.analysis.repo_url,
                    project=one.analysis.project,
                    key=one.key,
                )
                for one in found.functions
            ),
            searched=found.searched,
            left_out=found.left_out,
        )
