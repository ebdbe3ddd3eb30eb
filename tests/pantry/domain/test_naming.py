"""Names that look alike, and names of which nothing can be seen."""

from __future__ import annotations

import pytest

from pantry.domain.category_name import key_of
from pantry.domain.naming import look


@pytest.mark.parametrize(
    "alike",
    [
        "K\u00e4se",
        "k\u00e4se",
        " K\u00e4se",
        "K\u00e4se  ",
        "K\u00e4\u200bse",
        "Ka\u0308se",
        "KA\u0308SE",
        "\uff2b\u00e4se",
        "Ka\u200d\u0308se",
    ],
)
def test_names_that_look_alike_are_one_name(alike: str) -> None:
    assert key_of(alike) == key_of("K\u00e4se")


@pytest.mark.parametrize("other", ["Kase", "K\u00e4 se", "Kaese"])
def test_names_that_differ_to_the_eye_are_two(other: str) -> None:
    assert key_of(other) != key_of("K\u00e4se")


@pytest.mark.parametrize(
    "text",
    [
        "",
        " \u3000",
        "\u200b",
        "\u2060\ufeff",
        "\u3164",
        "\u2800",
        "\ufe0f",
        "\U000e0020",
        "\u00ad \u200d",
    ],
)
def test_invisible_characters_alone_look_like_nothing(text: str) -> None:
    assert look(text) == ""
