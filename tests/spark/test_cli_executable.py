"""`airflow streams ..` as a person or a program runs it: on stdout is the answer, and nothing else."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

# each starts Airflow, two start Spark: half a minute on a quiet machine, many on a busy one
pytestmark = pytest.mark.timeout(1800)

AIRFLOW = Path(sys.executable).parent / "airflow"
NUMBERS = ("fake", "numbers")
WINDOW = ("--window", "2026-11-20T10:00Z/2026-11-20T10:00:10Z", "--slack", "0")
SPAN = ("--start", "2026-11-20T10:00Z", "--end", "2026-11-20T10:00:20Z", "--window-length", "10s", "--slack", "0")


@pytest.fixture
def streams(tmp_path: Path) -> Callable[..., Any]:
    """Runs a command in a fresh home, and gives its answer: JSON, or text."""
    fake = {"conn_type": "fake", "extra": {"events": "60", "password": "", "token": ""}}
    environment = {
        **os.environ,
        "AIRFLOW_HOME": str(tmp_path / "airflow"),
        # each JVM says what memory it has
        "JDK_JAVA_OPTIONS": "-XshowSettings:vm",
        "AIRFLOW_CONN_FAKE_DEFAULT": json.dumps(fake),
        "AIRFLOW_CONN_LOCAL": json.dumps({"conn_type": "spark", "host": "local[2]"}),
    }

    def run(*arguments: str) -> Any:
        command = [AIRFLOW, "streams", *arguments]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"{arguments}\n{done.stdout}\n{done.stderr}"
        run.said = done.stderr
        return json.loads(done.stdout) if "json" in arguments else done.stdout

    return run


def test_the_first_question_to_an_empty_journal_is_answered(streams) -> None:
    assert streams("coverage", "--output", "json") == []
    assert "alembic" not in streams.said, "that the tables were made meanwhile is not the answer"
    assert streams("coverage") == "the journal knows no window yet: nothing was read\n"


@pytest.mark.slow
def test_every_command_answers_json_and_nothing_else(streams, tmp_path: Path) -> None:
    lake = ("--path", str(tmp_path / "lake"))
    submit = ("--spark-conn-id", "local", "--spark", "driver_memory=700m", "--conf", "spark.ui.enabled=false")
    read = streams("read", *NUMBERS, *WINDOW, *lake, *submit, "--output", "json")
    assert (read["rows"], read["verdict"]) == (20, "complete")
    assert "spark-submit" in streams.said
    assert "Max. Heap Size: 700.00M" in streams.said
    filled = streams("backfill", *NUMBERS, *SPAN, *lake, "--output", "json")
    assert (filled["verdict"], len(filled["covered"])) == ("complete", 1)
    assert len(list((tmp_path / "lake").glob("window_start=*"))) == 2
    commands = (
        ("plan", *NUMBERS, *WINDOW),
        ("backfill", *NUMBERS, *SPAN, "--dry-run"),
        ("coverage", *SPAN[:-2]),
        ("config", "fake"),
        ("cuts", "record", *NUMBERS),
        ("cuts", "list"),
        ("cuts", "decode", "pulsar", "31:4"),
    )
    with ThreadPoolExecutor(2) as pool:
        answers = list(pool.map(lambda command: streams(*command, "--output", "json"), commands))
    assert answers[0]["window"] == {"start": "2026-11-20T10:00:00Z", "end": "2026-11-20T10:00:10Z"}
    assert answers[2][0]["counts"]["covered"] == 2
    assert answers[6] == [{"ledger": 31, "entry": 4, "batch_index": -1}]
