"""The search for functions by name in the latest analyses of all projects: a scan of their reports that is bounded in time."""

from __future__ import annotations

import asyncio
import heapq
import time
from collections.abc import Sequence

import attrs

from gctd.engines.functions.keys import key_among
from gctd.engines.state import State
from gctd.readmodel.reports import FunctionView, ReportMissing, Reports
from gctd.readmodel.views import AnalysisView

SECONDS = 1.0
"""Time of a search. Analyses whose reports it did not come to are left out, and counted."""
MOST_PROJECTS = 10_000
"""Projects that a search looks at."""


@attrs.frozen(kw_only=True)
class FoundFunction:
    """A function of a latest analysis, with its key there."""

    analysis: AnalysisView
    entry: FunctionView
    key: str


@attrs.frozen(kw_only=True)
class FoundFunctions:
    """The best results of a search. `searched` and `left_out` are numbers of projects."""

    functions: tuple[FoundFunction, ...]
    searched: int
    left_out: int


@attrs.frozen
class FunctionSearch:
    """Searches in the reports of analyses, one search at a time. Decoded reports are kept, so a second search is faster."""

    _reports: Reports
    _turn: asyncio.Lock = attrs.field(factory=asyncio.Lock, init=False)

    async def find(self, text: str, analyses: Sequence[AnalysisView], *, limit: int) -> FoundFunctions:
        """Return at most `limit` functions with all words of a text in their name, their file or the name of their project.

        A name that is equal to the text comes first, in the same case before another one; then the riskiest function.
        """
        until = time.monotonic() + SECONDS
        best: list[tuple[tuple[float, ...], int, AnalysisView, FunctionView, Sequence[FunctionView]]] = []
        searched = 0
        async with self._turn:
            for number, analysis in enumerate(analyses[:MOST_PROJECTS]):
                if time.monotonic() > until:
                    break
                try:
                    functions = await self._reports.functions(analysis.report_digest)
                except ReportMissing:
                    continue
                of_one = await asyncio.to_thread(_best, functions, f"{analysis.repo_url} {analysis.project}", text, limit)
                best += [(rank, number, analysis, entry, functions) for rank, entry in of_one]
                searched += 1
        chosen = heapq.nsmallest(limit, best, key=lambda one: one[:2])
        return await asyncio.to_thread(
            lambda: FoundFunctions(
                functions=tuple(
                    FoundFunction(analysis=analysis, entry=entry, key=key_among(entry, functions))
                    for _, _, analysis, entry, functions in chosen
                ),
                searched=searched,
                left_out=len(analyses) - searched,
            )
        )


def _best(
    functions: Sequence[FunctionView], project: str, text: str, limit: int
) -> Sequence[tuple[tuple[float, ...], FunctionView]]:
    words = [word for word in text.lower().split() if word not in project.lower()]
    alike = [entry for entry in functions if all(word in entry.function.lower() or word in entry.file.lower() for word in words)]
    if not words:  # only the project was named
        alike = list(functions)
    names = text.split()
    return heapq.nsmallest(limit, ((_rank(entry, names), entry) for entry in alike), key=lambda one: one[0])


def _rank(entry: FunctionView, names: Sequence[str]) -> tuple[float, ...]:
    """Return the place of a function among the results, the smaller the earlier."""
    own = (entry.function, entry.name)
    if any(name in own for name in names):
        nearness = 0
    elif any(name.lower() == one.lower() for name in names for one in own):
        nearness = 1
    else:
        nearness = 2 if any(name in entry.function for name in names) else 3
    return nearness, -entry.crap if State(entry.state).known else 0.0
