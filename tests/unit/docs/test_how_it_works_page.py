"""The map of files for newcomers names files that are there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import airflow_provider_streams

PACKAGE = Path(airflow_provider_streams.__file__).parent
PAGE = PACKAGE.parent / "docs" / "pages" / "how-it-works.md"


def rows(heading: str) -> list[list[str]]:
    """The cells of the table's rows, the one after this line of the page."""
    table = PAGE.read_text().partition(heading)[2].partition("\n\n")[2].partition("\n\n")[0]
    cells = [[cell.strip() for cell in row.strip("|").split("|")] for row in table.splitlines()]
    return cells[2:]


def named(cell: str) -> list[str]:
    """The files and folders that a cell names, without ending."""
    return re.findall(r"`([\w/]+)`", cell)


def exists(name: str, *folders: Path) -> bool:
    return any((base / name).is_dir() or (base / f"{name}.py").is_file() for base in folders)


@pytest.mark.parametrize(("system", "column"), [("pulsar", 1), ("pravega", 2)])
def test_the_map_of_a_system_names_files_that_are_there(system, column):
    names = [name for row in rows("In each system's folder:") for name in named(row[column])]
    assert len(names) > 20
    assert [name for name in names if not exists(name, PACKAGE / "systems" / system, PACKAGE)] == []


def test_the_map_of_the_other_rooms_names_files_that_are_there():
    table = rows("each from its front door inwards:")
    assert len(table) > 5
    for room, way in table:
        folders = [PACKAGE / name for name in named(room)]
        assert [name for name in named(way) if not exists(name, *folders, PACKAGE)] == []
