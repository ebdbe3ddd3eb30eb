"""Reports to a forge about a commit that has other projects than the repository has at its default branch."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import attrs
import pytest

from tests.gctd.http.test_hooks import CLEAN, OLD, RISKY, Forges, write_forges
from tests.support.tracker.forge_double import forge_double
from tests.support.tracker.made_up import MadeUp
from tests.support.tracker.system import tracker_system

pytestmark = pytest.mark.real

BEFORE = attrs.evolve(OLD, projects=(".", "p1"))
ADDS = attrs.evolve(CLEAN, projects=(".", "p1", "tools/lint"))
ADDS_RISKY = attrs.evolve(RISKY, commit_sha="e" * 40, projects=(".", "p1", "tools/lint"))
SAME = attrs.evolve(CLEAN, commit_sha="9" * 40, projects=(".", "p1"))
REMOVES = attrs.evolve(CLEAN, commit_sha="f" * 40, projects=(".",))
REMOVES_ALL = attrs.evolve(CLEAN, commit_sha="d" * 40, projects=("elsewhere",))


@pytest.fixture
async def forges(tmp_path: Path) -> AsyncIterator[Forges]:
    """A tracker and its double of the forges. The default branch of each repository has the projects `.` and `p1`."""
    for made in (BEFORE, ADDS, ADDS_RISKY, SAME, REMOVES, REMOVES_ALL):
        made.write(tmp_path / "analyses", made.commit_sha)
    async with forge_double() as double:
        file = write_forges(tmp_path, double.url)
        async with tracker_system(tmp_path, GCTD_FORGES_FILE=str(file)) as system:
            await system.start_worker(1, FAKE_ANALYSES=str(tmp_path / "analyses"), FAKE_PROJECTS="2")
            await system.register("https://github.test/owner/name")
            yield Forges(system, double)


async def reported(forges: Forges, number: int, made: MadeUp) -> tuple[str, str, str]:
    """State and description of the status after a pull request, and the text of its comment."""
    await forges.ended(await forges.pull("owner/name", number, made, f"d-{number}"))
    (status,) = forges.double.statuses[made.commit_sha]
    (comment,) = forges.double.comments[number]
    return status["state"], status["description"], comment["body"]


async def test_a_report_names_the_new_projects_that_are_not_judged(forges: Forges) -> None:
    state, description, comment = await reported(forges, 1, ADDS)
    assert (state, description) == ("success", "gate passed; not judged: tools/lint")
    assert "Not judged: `tools/lint`." in comment
    assert "gctd repo add https://github.test/owner/name --refresh" in comment
    state, description, comment = await reported(forges, 2, ADDS_RISKY)
    assert (state, description) == ("failure", "gate failed: max_new; not judged: tools/lint")
    state, description, comment = await reported(forges, 3, SAME)
    assert (state, description) == ("success", "gate passed")
    assert "Not judged" not in comment


async def test_a_project_that_the_commit_removes_has_no_say(forges: Forges) -> None:
    assert (await reported(forges, 1, REMOVES))[:2] == ("success", "gate passed")
    state, description, _ = await reported(forges, 2, REMOVES_ALL)
    assert (state, description) == ("error", f"analysis failed: there is no project '.' at {REMOVES_ALL.commit_sha[:12]}")
