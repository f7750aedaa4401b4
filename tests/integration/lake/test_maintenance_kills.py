"""A process that is killed while it compacts or expires a table leaves the rows; the next one settles it."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.integration.lake.keep_until_killed import STEPS
from tests.integration.lake.kept_tables import compactable, now, table_in
from tests.integration.lake.landing import TERMS, hour

pytestmark = pytest.mark.lake

ROOT = Path(__file__).parents[3]
ROWS = {hour(0): list(range(200, 206))}
COUNTS = {window: len(rows) for window, rows in ROWS.items()}


@pytest.mark.slow_except("iceberg")
@pytest.mark.parametrize("kind", ["delta", "iceberg"])
def test_a_killed_process_leaves_the_rows_and_the_next_one_settles_it(kind, tmp_path):
    for number in range(len(STEPS)):
        (tmp_path / str(number)).mkdir()
    command = [sys.executable, "-m", "tests.integration.lake.keep_until_killed", kind, str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.stdout.split("\n")[:-1] == [str(int(signal.SIGKILL))] * len(STEPS), done.stderr
    for number, step in enumerate(STEPS):
        with table_in(kind, tmp_path / str(number)) as table:
            assert table.ids() == ROWS, step
            table.compact()
            table.expire(now())
            contents = compactable(table.sink, TERMS.mark).contents()
            assert {window: content.rows for window, content in contents.items()} == COUNTS, step
            assert len(table.files()) == len(ROWS), step
