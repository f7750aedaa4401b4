"""What is read without building the site is complete there: on PyPI and on the repository's pages."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[3]
GET_STARTED = ROOT / "docs" / "pages" / "get-started.md"


def test_the_readme_has_absolute_links_and_pictures_only():
    links = re.findall(r"\]\(([^)]+)\)", (ROOT / "README.md").read_text())
    assert len(links) > 5
    assert [link for link in links if not link.startswith("https://")] == []


def test_the_readme_links_to_files_that_are_there():
    ours = re.findall(r"/(?:blob/|tree/)?main/([\w./-]+)", (ROOT / "README.md").read_text())
    assert len(ours) > 5
    assert [path for path in ours if not (ROOT / path).exists()] == []


def test_the_first_page_includes_no_other_file():
    assert "--8<--" not in GET_STARTED.read_text()
