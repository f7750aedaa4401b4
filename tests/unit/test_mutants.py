"""The mutants of `tests/mutants` fit the code as it is; `python -m tests.mutants` sees whether tests notice them."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from tests.mutants.clean_copy import ROOT, apply
from tests.mutants.mutant import AREAS, Mutant, mutants, read_mutant


@pytest.mark.parametrize("mutant", mutants(), ids=lambda mutant: mutant.name)
def test_a_mutant_applies_and_its_tests_exist(mutant: Mutant) -> None:
    if not (ROOT / ".git").exists():
        pytest.skip("no checkout")
    assert apply(mutant.path, ROOT, "--check") == ""
    assert [test for test in mutant.tests if not (ROOT / test.partition("::")[0]).is_file()] == []


def test_there_are_two_of_each_area() -> None:
    assert Counter(mutant.area for mutant in mutants()) == dict.fromkeys(AREAS, 2)


def test_a_patch_without_a_rule_is_refused(tmp_path: Path) -> None:
    patch = tmp_path / "reading_nothing.patch"
    patch.write_text("diff --git a/a b/a\n")
    with pytest.raises(ValueError, match=r"reading_nothing.patch must begin with a line `Rule: \.\.`"):
        read_mutant(patch)


def test_a_mutant_that_is_not_there_is_an_error() -> None:
    with pytest.raises(ValueError, match="no mutant is named planning_nonsense"):
        mutants(["planning_nonsense"])
