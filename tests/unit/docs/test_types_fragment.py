"""The documented table of types is the code's."""

import runpy
from pathlib import Path

DOCS = Path(__file__).parents[3] / "docs"


def test_the_table_of_types_is_generated_from_the_code() -> None:
    generated = runpy.run_path(str(DOCS / "generate_types.py"))["fragment"]()
    assert (DOCS / "fragments" / "types.md").read_text() == generated, "run: python docs/generate_types.py"
