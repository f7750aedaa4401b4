"""The pages that the code writes are the code's."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[3] / "docs"


@pytest.mark.parametrize("page", ["options", "commands"])
def test_a_generated_page_is_generated_from_the_code(page: str) -> None:
    script = f"generate_{page}.py"
    generated = runpy.run_path(str(DOCS / script))["page"]()
    assert (DOCS / "pages" / "reference" / f"{page}.md").read_text() == generated, f"run: python docs/{script}"
