"""Addresses of the dashboard's pages, for the links in comments and statuses at a forge."""

from __future__ import annotations

from urllib.parse import quote

import attrs

from gctd.readmodel.views import AnalysisView


@attrs.frozen
class Dashboard:
    """The dashboard at a public address. Without an address there are no links: each method returns an empty text."""

    _address: str = ""

    @classmethod
    def at(cls, public_url: str | None) -> Dashboard:
        """Return the dashboard of the setting `public_url`."""
        return cls((public_url or "").rstrip("/"))

    def task(self, task_id: str) -> str:
        """Return the address of a task."""
        return self._under(f"/tasks/{task_id}")

    def analysis(self, after: AnalysisView, older: AnalysisView | None, base: str = "") -> str:
        """Return the address of the comparison of two analyses, or of the one analysis if `older` is None.

        `base` is the base that the verdict was asked for: the page then has the stored verdict.
        """
        if older is None:
            return self._under(f"/analyses/{after.analysis_id}?task={after.task_id}")
        query = f"?base={quote(base, safe='')}" if base else ""
        return self._under(f"/analyses/{after.analysis_id}/compare/{older.task_id}...{after.task_id}{query}")

    def _under(self, path: str) -> str:
        return f"{self._address}{path}" if self._address else ""
