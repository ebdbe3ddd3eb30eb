"""The latest analysis of a project: of the last test run on the ref that the project tracks, the last scoring.

This is the only place of the rule in SQL. An analysis of another ref is in the history under its name. An analysis that was made
only for comparisons (`baseline`) has the ref of another commit, or of a fork, so it is never the latest. In Python,
`gctd.control.requests.new_tasks.may_be_latest` tells it of a task without a result.
"""

from __future__ import annotations

_TRACKED = """
    LEFT JOIN tracked_refs AS own ON own.repo = newest.repo_id AND own.subdir = newest.project
    LEFT JOIN tracked_refs AS root ON root.repo = newest.repo_id AND root.subdir = ''"""
_REF = "COALESCE(own.tracked, root.tracked)"

NEWEST_FIRST = "ORDER BY measured DESC, sequence DESC"
"""The order of a project's analyses: by their test run, then by the time of their scoring."""

LATEST = f"""
    SELECT newest.* FROM analyses AS newest {_TRACKED}
    WHERE newest.ref = {_REF} AND NOT newest.baseline AND newest.sequence = (
        SELECT sequence FROM analyses AS other
        WHERE other.repo_id = newest.repo_id AND other.project = newest.project AND other.ref = newest.ref AND NOT other.baseline
        {NEWEST_FIRST} LIMIT 1
    )"""  # noqa: S608 - constants
"""The latest analysis of each project. Conditions and an order may follow."""

PROJECTS = f"SELECT DISTINCT newest.analysis_id, {_REF} AS tracked FROM analyses AS newest {_TRACKED}"  # noqa: S608 - constants
"""The analysis id and the tracked ref of each project. Conditions may follow."""
OF_PROJECT = "analysis_id = parent.analysis_id AND ref = parent.tracked AND NOT baseline"
"""The analyses of a project from PROJECTS, the `parent`, that its latest analysis is the newest of."""
