"""Whether two analyses were made in the same way: only then are their values comparable."""

from __future__ import annotations

from typing import Any

import attrs
import pytest

from gctd.control.comparing.baselines import different
from gctd.domain.analysis import Blob
from gctd.domain.upload import UploadedProfile, with_upload
from gctd.readmodel.breaks import breaks
from gctd.readmodel.views import AnalysisView
from tests.support.tracker.analyses import VIEW

UPLOAD = UploadedProfile(flag="b", profile=Blob(digest="", size=0), go_version="go1.26.0", platform="linux/amd64")


def made(**more: Any) -> AnalysisView:
    return attrs.evolve(VIEW, **more)


@pytest.mark.parametrize(("one", "other"), [("go1.26rc1", "go1.26.3"), ("go1.26beta2", "go1.26rc1"), ("go1.26", "go1.26.0")])
def test_releases_of_a_minor_version_of_go_measure_in_the_same_way(one: str, other: str) -> None:
    assert different(made(go_version=one), made(go_version=other)) == []
    assert len(with_upload((attrs.evolve(UPLOAD, flag="a", go_version=one),), attrs.evolve(UPLOAD, go_version=other))) == 2


def test_minor_versions_of_go_measure_differently() -> None:
    assert different(made(go_version="go1.26rc1"), made(go_version="go1.25.9")) == ["Go go1.26, not go1.25"]
    assert different(made(go_version="devel"), made(go_version="go1.25.9")) == ["Go devel, not go1.25"]


def test_the_order_of_build_tags_has_no_effect() -> None:
    one, other = made(flags=("-tags=b,a", "-short")), made(flags=("-tags=a,b", "-short"))
    assert different(one, other) == []
    assert breaks(one, other) == ()
    assert different(one, made(flags=("-tags=a", "-short"))) == ["flags -tags=a,b -short, not -tags=a -short"]
