"""The tests that the page of guarantees names exist."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[2]
PAGE = TESTS.parent / "docs" / "pages" / "concepts" / "guarantees.md"
CITED = sorted(set(re.findall(r"`((?:\w+/)+test_\w+)(?:::(\w+))?`( \(all\))?", PAGE.read_text())))
SLOW = re.compile(r"pytest\.mark\.slow\b(?!_)")


def test_every_promise_names_a_test():
    promises = re.findall(r"^\| P(\d+) \|.*\| (.+) \|$", PAGE.read_text(), re.MULTILINE)
    assert [int(number) for number, _ in promises] == list(range(1, len(promises) + 1))
    assert all("test_" in shown for _, shown in promises)


@pytest.mark.parametrize(("module", "name", "tier"), CITED)
def test_a_cited_test_exists_in_the_tier_that_the_page_names(module, name, tier):
    tree = ast.parse((TESTS / f"{module}.py").read_text())
    if module.startswith("pipeline/"):
        return  # `make pipeline`, as the page says
    marks = [_marks(node) for node in tree.body if _is_test(node) and name in ("", getattr(node, "name", ""))]
    assert marks
    whole = any(SLOW.search(ast.unparse(node)) for node in tree.body if _assigns(node, "pytestmark"))
    assert (whole or all(map(SLOW.search, marks))) == bool(tier)


def _is_test(node):
    return _assigns(node, "Test") or getattr(node, "name", "").startswith(("test_", "Test"))


def _assigns(node, start):
    return isinstance(node, ast.Assign) and ast.unparse(node.targets[0]).startswith(start)


def _marks(node):
    if isinstance(node, ast.Assign):
        return ast.unparse(node.value)
    return " ".join(map(ast.unparse, node.decorator_list))
