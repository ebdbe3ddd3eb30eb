"""A value of the wrong form is refused in words: a user never sees a regular expression."""

from __future__ import annotations

import ast

from tests.support import ROOT
from tests.support.layers import PACKAGES

DECLARING = {"path", "query", "header", "member", "payload", "setting", "Rule"}


def test_every_pattern_of_a_field_or_a_setting_has_its_form_in_words() -> None:
    missing = []
    for package in PACKAGES:
        for file in (ROOT / package).rglob("*.py"):
            for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
                if isinstance(node, ast.Call) and getattr(node.func, "id", None) in DECLARING:
                    given = {keyword.arg for keyword in node.keywords}
                    if "pattern" in given and "form" not in given:
                        missing.append(f"{file.relative_to(ROOT)}:{node.lineno}")
    assert missing == []
