"""Tables of Spark's catalogs, on a Spark of their own: its tests run in another process."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.spark.iceberg_spark import environment

HERE = Path(__file__).parent


@pytest.mark.timeout(900)
def test_windows_of_an_iceberg_table() -> None:
    arguments = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-x", str(HERE / "tables")]
    ended = subprocess.run(
        arguments, env=environment(), cwd=HERE.parents[1], capture_output=True, text=True, check=False
    )
    assert ended.returncode == 0, ended.stdout[-20_000:] + ended.stderr[-4000:]
