from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

TESTS = """
def test_first():
    assert 6 * 7 == 41

def test_second():
    print("the second test runs")
"""


def test_a_failure_is_shown_when_it_happens_and_again_at_the_end(tmp_path):
    shutil.copy(Path(__file__).parents[1] / "conftest.py", tmp_path)
    (tmp_path / "test_two.py").write_text(TESTS)
    command = [sys.executable, "-m", "pytest", "-s", "-p", "no:cacheprovider", str(tmp_path)]
    shown = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False).stdout
    early, late = shown.split("the second test runs")
    assert "test_two.py::test_first (call)" in early
    assert "assert (6 * 7) == 41" in early
    assert "assert (6 * 7) == 41" in late
