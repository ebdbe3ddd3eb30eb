"""Fixtures of the read side's tests."""

from __future__ import annotations

import pytest

pytest.register_assert_rewrite("projections.testing")
