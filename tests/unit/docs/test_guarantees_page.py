"""The tests that the page of guarantees names exist."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[2]
PAGE = TESTS.parent / "docs" / "pages" / "concepts" / "guarantees.md"
CITED = sorted(set(re.findall(r"`((?:\w+/)+test_\w+)(?:::(\w+))?`", PAGE.read_text())))


def test_every_promise_names_a_test():
    promises = re.findall(r"^\| P(\d+) \|.*\| (.+) \|$", PAGE.read_text(), re.MULTILINE)
    assert [int(number) for number, _ in promises] == list(range(1, len(promises) + 1))
    assert all("test_" in shown for _, shown in promises)


@pytest.mark.parametrize(("module", "name"), CITED)
def test_a_cited_test_exists(module, name):
    file = TESTS / f"{module}.py"
    if not name:
        assert file.is_file()
        return
    defined = {node.name for node in ast.walk(ast.parse(file.read_text())) if hasattr(node, "name")}
    assert name in defined
