"""Tables of Spark's catalogs, on a Spark of their own: its tests run in another process."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.spark.acknowledged import ADDRESSES
from tests.spark.lake_spark import environment

HERE = Path(__file__).parent


@pytest.mark.slow
@pytest.mark.pulsar
@pytest.mark.pravega
@pytest.mark.timeout(3600)
def test_windows_of_an_iceberg_table(real_streams, tmp_path: Path) -> None:
    told = tmp_path / "streams.json"
    told.write_text(json.dumps({system: one.to_json() for system, one in real_streams.items()}))
    arguments = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-x", str(HERE / "tables")]
    given = {**environment(), ADDRESSES: str(told)}
    ended = subprocess.run(arguments, env=given, cwd=HERE.parents[1], capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stdout[-20_000:] + ended.stderr[-4000:]
