"""The comment for a pull request about an analysis."""

from __future__ import annotations

from gctd.control.comparing.judging import AnalysisJudgement
from gctd.control.comparing.pairs import AnalysisPair
from gctd.exports import markdown
from gctd.exports.dashboard import Dashboard
from gctd.scan.hosts.links import Links, link


def comment_on(
    pair: AnalysisPair, links: Links, dashboard: Dashboard, judged: AnalysisJudgement | None = None, base: str = ""
) -> str:
    """Return the comment in Markdown: the changes since the analysis before, and the gate's judgement, if given.

    `base` is the base that the judgement was asked for.
    """
    after = pair.after
    source = links.source(after.repo_url, after.commit_sha, after.project)
    return markdown.Comment(
        after=after,
        entries=pair.report.entries,
        before=pair.before,
        changes=pair.changes,
        breaks=pair.breaks,
        partial=pair.partial,
        link=lambda entry: link(source, entry.file, entry.line),
        page=dashboard.analysis(after, pair.before, base),
        limits=judged.rules if judged else None,
        verdict=judged.verdict if judged else None,
    ).markdown()
