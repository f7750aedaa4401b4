"""The documented path of one window is the code's, and short."""

import re
import runpy
from pathlib import Path

DOCS = Path(__file__).parents[3] / "docs"
MOST_STOPS = 11


def test_the_path_of_a_window_is_generated_from_the_code() -> None:
    generated = runpy.run_path(str(DOCS / "generate_path.py"))["fragment"]()
    assert (DOCS / "fragments" / "path.md").read_text() == generated, "run: python docs/generate_path.py"
    (count,) = re.findall(r"(\d+) stops", generated)
    assert int(count) <= MOST_STOPS
