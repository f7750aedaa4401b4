"""A process that is killed while a window lands leaves the old one or the new one."""

from __future__ import annotations

import random
import subprocess
import sys
import time
from pathlib import Path

from airflow_provider_streams import DeltaSink
from airflow_provider_streams.lake.delta.writer import storage_of
from tests.integration.lake.delta_reading import windows
from tests.integration.lake.landing import hour, land, rows_of

ROOT = Path(__file__).parents[3]
ROUNDS = 2


def test_a_killed_process_leaves_the_old_window_or_the_new_one(tmp_path):
    sink = DeltaSink(str(tmp_path / "orders"))
    chance = random.Random(7)  # noqa: S311
    landed = 0
    for _ in range(ROUNDS):
        command = [sys.executable, "-m", "tests.integration.lake.land_for_ever", sink.path, str(landed + 1)]
        with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as lander:
            for _ in range(3):
                landed = int(lander.stdout.readline())
            time.sleep(chance.uniform(0, 0.05))  # into the midst of the next one
            lander.kill()
            landed = int((lander.stdout.read().split() or [landed])[-1])
        (rows,) = windows(storage_of(sink)).values()
        assert sorted(row["id"] for row in rows) in [list(range(landed)), list(range(landed + 1))]
        landed = len(rows)
    land(sink, hour(0), rows_of(0, 2))
    assert [len(rows) for rows in windows(storage_of(sink)).values()] == [2]
