"""The documentation of options is the code's."""

import runpy
from pathlib import Path

DOCS = Path(__file__).parents[3] / "docs"


def test_the_page_of_options_is_generated_from_the_code() -> None:
    generated = runpy.run_path(str(DOCS / "generate_options.py"))["page"]()
    assert (DOCS / "pages" / "options.md").read_text() == generated, "run: python docs/generate_options.py"
