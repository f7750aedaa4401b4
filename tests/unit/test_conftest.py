from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.seeds import VARIABLES

ROOT = Path(__file__).parents[2]

TESTS = """
def test_first():
    assert 6 * 7 == 41

def test_second():
    print("the second test runs")
"""

DRAWS = """
from hypothesis import given, strategies as st

drawn = []

@given(st.integers(0, 10**7))
def test_draws(n):
    drawn.append(n)

def test_shows():
    print(f"<{drawn}>")
"""


@pytest.fixture
def shown(tmp_path):
    """`shown({"test_a.py": text}, STREAMS_SEED="7")`: what pytest prints of these tests below our conftest."""

    def run(files, modules=(), **variables):
        shutil.copy(ROOT / "tests" / "conftest.py", tmp_path)
        for name, text in {**files, **dict(modules)}.items():
            (tmp_path / name).write_text(text)
        kept = {name: value for name, value in os.environ.items() if name not in VARIABLES}
        path = os.pathsep.join(filter(None, [str(ROOT), kept.get("PYTHONPATH")]))
        command = [sys.executable, "-m", "pytest", "-s", "-p", "no:cacheprovider", *files]
        environment = {**kept, "PYTHONPATH": path, **variables}
        ended = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
        return ended.stdout + ended.stderr

    return run


def test_a_failure_is_shown_when_it_happens_and_again_at_the_end(shown):
    early, late = shown({"test_two.py": TESTS}).split("the second test runs")
    assert "test_two.py::test_first (call)" in early
    assert "assert (6 * 7) == 41" in early
    assert "assert (6 * 7) == 41" in late


def _drawn(said: str) -> str:
    return said.partition("<")[2].partition(">")[0]


def test_examples_do_not_hang_on_which_modules_are_imported(shown):
    """Hypothesis would also draw the constants of all modules that it finds."""
    alone = _drawn(shown({"test_draws.py": DRAWS}))
    assert len(alone.split(",")) == 100
    numbers = "".join(f"N{n} = {n}\n" for n in range(1_000_003, 1_000_300))
    files = {"test_draws.py": DRAWS, "test_shop.py": "import shop\n\ndef test_shop():\n    assert shop\n"}
    assert _drawn(shown(files, {"shop.py": numbers})) == alone


def test_another_seed_draws_others_and_the_same_each_time(shown):
    usual, first, again = (
        _drawn(shown({"test_draws.py": DRAWS}, **how)) for how in ({}, {"STREAMS_SEED": "7"}, {"STREAMS_SEED": "7"})
    )
    assert usual != first == again


def test_more_examples_are_drawn_as_asked(shown):
    assert len(_drawn(shown({"test_draws.py": DRAWS}, STREAMS_EXAMPLES="250")).split(",")) == 250


def test_cases_that_stay_in_the_quick_tier_must_exist(shown):
    cases = "import pytest\n\n@pytest.mark.slow_except('a', 'z')\n@pytest.mark.parametrize('n', ['a', 'b'])\n"
    said = shown({"test_a.py": f"{cases}def test_n(n):\n    pass\n"})
    assert "names cases that do not exist: {'test_a.py::test_n': {'z'}}" in said
    none = "import pytest\n\n@pytest.mark.slow_except('a')\ndef test_n():\n    pass\n"
    assert "test_a.py::test_n has none" in shown({"test_a.py": none})
