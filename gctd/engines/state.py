"""The state of the measurement of a function's coverage."""

from __future__ import annotations

from enum import StrEnum


class State(StrEnum):
    """State of the measurement of a function's coverage.

    - `measured`: the tests of its package ran to their end.
    - `other_tests`: its package has no tests, and tests of other packages reach it.
    - `no_tests`: its package has no tests, and no other test reaches it.
    - `tests_failed`: tests failed, panicked, took too long or were killed, so its coverage is a lower bound or unknown.
    - `build_failed`: its package or the package's tests do not build.
    - `not_built`: it is not built on this platform.
    - `generated`: a program wrote its file.
    - `excluded`: a rule leaves it out.
    - `unknown`: no fact about its coverage is known.
    """

    MEASURED = "measured"
    OTHER_TESTS = "other_tests"
    NO_TESTS = "no_tests"
    TESTS_FAILED = "tests_failed"
    BUILD_FAILED = "build_failed"
    NOT_BUILT = "not_built"
    GENERATED = "generated"
    EXCLUDED = "excluded"
    UNKNOWN = "unknown"

    @property
    def known(self) -> bool:
        """Whether the function's coverage is known, 0 % of a package without tests included: only then it can be risky."""
        return self in _KNOWN

    @property
    def outside(self) -> bool:
        """Whether the function is outside of the measured set, and so outside of the gate."""
        return self in _OUTSIDE


_OUTSIDE = frozenset({State.NOT_BUILT, State.GENERATED, State.EXCLUDED})
_KNOWN = frozenset({State.MEASURED, State.OTHER_TESTS, State.NO_TESTS})
