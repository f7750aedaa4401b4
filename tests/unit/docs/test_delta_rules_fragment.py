"""The documented rules of Delta are the code's."""

import runpy
from pathlib import Path

DOCS = Path(__file__).parents[3] / "docs"


def test_the_tables_of_rules_are_generated_from_the_code() -> None:
    generated = runpy.run_path(str(DOCS / "generate_delta_rules.py"))["fragment"]()
    written = (DOCS / "fragments" / "delta-rules.md").read_text()
    assert written == generated, "run: python docs/generate_delta_rules.py"
