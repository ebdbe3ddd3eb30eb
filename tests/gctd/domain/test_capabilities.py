"""Which worker can run which job."""

from __future__ import annotations

import pytest
from hypothesis import given as for_all
from hypothesis import strategies as st

from gctd.domain.capabilities import Capabilities, Needs, go_order, missing_everywhere

ENGINES = st.sampled_from(["native", "native-compat"])
VERSIONS = st.builds(lambda minor, patch: f"1.{minor}.{patch}", st.integers(0, 40), st.integers(0, 30))
WORKERS = st.builds(
    lambda engines, version: Capabilities(engines=engines, go_version=version and f"go{version}"),
    st.frozensets(ENGINES),
    VERSIONS | st.just(""),
)
NEEDS = st.builds(lambda engine, go: Needs(engine=engine, go=go), ENGINES | st.just(""), VERSIONS | st.just(""))


@pytest.mark.parametrize(
    ("needed", "had", "fits"),
    [
        ("1.26", "go1.26.8", True),
        ("1.26.8", "go1.26.8", True),
        ("1.26.9", "go1.26.8", False),
        ("1.27", "go1.26.8", False),
        ("1.27", "go1.27rc1", True),
        ("1.27.0", "go1.27rc1", False),
        ("1.27rc2", "go1.27rc1", False),
        ("1.20", "go1.20", True),
        ("1.9", "go1.10", True),
        ("1.26.1", "go1.26.8 X:nodwarf5", True),
        ("1.27", "devel +abc", True),
        ("not a version", "go1.26.8", True),
    ],
)
def test_a_version_of_go_fits_as_go_itself_decides(needed: str, had: str, fits: bool) -> None:
    missing = Capabilities(go_version=had).missing(Needs(go=needed))
    assert missing == ("" if fits else f"Go {needed} or newer")


def test_a_missing_capability_is_named() -> None:
    old, plain = (
        Capabilities(engines=frozenset({"native"}), go_version="go1.25.3"),
        Capabilities(engines=frozenset({"native"})),
    )
    assert missing_everywhere(Needs(engine="native-compat"), [old, plain]) == "no worker has the engine native-compat"
    assert (
        missing_everywhere(Needs(engine="native", go="1.26"), [old]) == "no worker has Go 1.26 or newer (the newest is go1.25.3)"
    )
    other = Capabilities(engines=frozenset({"native-compat"}), go_version="go1.25.3")
    new = Capabilities(engines=frozenset({"native"}), go_version="go1.26.3")
    both = missing_everywhere(Needs(engine="native-compat", go="1.26"), [other, new])
    assert both == "no worker has both Go 1.26 or newer and the engine native-compat"


@for_all(needs=NEEDS, workers=st.lists(WORKERS, max_size=4))
def test_nothing_is_missing_if_one_worker_has_it_all(needs: Needs, workers: list[Capabilities]) -> None:
    able = [worker for worker in workers if not worker.missing(needs)]
    assert bool(missing_everywhere(needs, workers)) == (bool(workers) and not able)


@for_all(one=VERSIONS, other=VERSIONS)
def test_versions_are_in_the_order_of_their_numbers(one: str, other: str) -> None:
    first, second = go_order(one), go_order(other)
    assert first is not None
    assert second is not None
    numbers = [tuple(int(part) for part in version.split(".")) for version in (one, other)]
    assert (first <= second) == (numbers[0] <= numbers[1])
