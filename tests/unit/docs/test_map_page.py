"""The map for contributors names the package's folders, all of them."""

from __future__ import annotations

import re
from pathlib import Path

import airflow_provider_streams

PACKAGE = Path(airflow_provider_streams.__file__).parent
PAGE = PACKAGE.parent / "docs" / "pages" / "contributing" / "map.md"


def drawn() -> set[str]:
    """The folders and files that the tree names: the words before the first gap of two blanks, in each line."""
    tree = PAGE.read_text().partition("```text\nairflow_provider_streams/\n")[2].partition("```")[0]
    return {name for line in tree.splitlines() for name in re.split(r"\s{2,}", line.strip())[0].split()}


def test_the_map_draws_every_folder_and_nothing_else():
    folders = {f"{file.parent.name}/" for file in PACKAGE.glob("*/__init__.py")}
    assert drawn() == folders


def test_the_map_names_paths_that_are_there():
    named = set(re.findall(r"`((?:\w+/)+(?:\w+\.py)?)`", PAGE.read_text()))
    assert len(named) > 5
    assert [name for name in named if not ((PACKAGE / name).exists() or (PACKAGE.parent / name).exists())] == []
