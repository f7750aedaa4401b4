"""Tables outlive this package: other programs read the same rows, write to the tables, and maintain them.

In `tests/install`, the package is really uninstalled.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.integration.lake.kept_tables import table_in
from tests.integration.lake.landing import hour
from tests.integration.lake.leaver import OWN

pytestmark = pytest.mark.lake

LEAVER = Path(__file__).with_name("leaver.py")


@pytest.mark.parametrize("kind", ["iceberg", "delta", "parquet"])
def test_without_the_package_tables_are_read_written_and_maintained(kind: str, tmp_path: Path) -> None:
    with table_in(kind, tmp_path) as table:
        table.land(hour(0), 0, 30)
        table.land(hour(1), 30, 20)
        table.land(hour(0), 0, 25)  # a window that was replaced once
    rows = [*range(25), *range(30, 50)]
    done = subprocess.run([sys.executable, LEAVER, kind, tmp_path], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    said = json.loads(done.stdout)
    assert len(said["before"]) == 2
    assert all(found == rows for found in said["before"].values()), "each engine reads what was landed"
    assert all(found == [*rows, OWN] for found in said["after"].values()), "and what another writer adds"
