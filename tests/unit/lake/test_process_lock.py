"""A process is alive as long as it lives, and not a moment longer."""

from __future__ import annotations

import errno
import fcntl
import os
import subprocess
import sys
from collections.abc import Callable
from contextlib import nullcontext
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from airflow_provider_streams.errors import SinkError
from airflow_provider_streams.lake.data_files import DataFile
from airflow_provider_streams.lake.parquet.table import ParquetTable
from airflow_provider_streams.lake.parquet.writer import ParquetWriter
from airflow_provider_streams.lake.process_lock import EXIT_CODE, ProcessLock, is_alive
from airflow_provider_streams.model.plan.receipt import Receipt
from airflow_provider_streams.model.sinks.landing import TableMark, TableTerms
from airflow_provider_streams.model.sinks.sink import ParquetSink
from airflow_provider_streams.model.window.window import Window
from airflow_provider_streams.spark.job.staging import write_table

START = datetime(2026, 11, 20, 10, tzinfo=UTC)
HOUR = Window(START, START + timedelta(hours=1))
OWN = TableTerms(TableMark("1f", "fake:fake_default:numbers", "reader"))
RECEIPT = Receipt("2a", (), 1.0, "complete")

LIVING = """
import sys
from pathlib import Path
from airflow_provider_streams.lake.process_lock import ProcessLock
ProcessLock(Path(sys.argv[1])).begin()
print("alive", flush=True)
sys.stdin.read()
"""
WANTED = """
import sys
from pathlib import Path
from airflow_provider_streams.lake.process_lock import exit_when_released
exit_when_released(Path(sys.argv[1]))
print("at work", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def python():
    """`python(program, file)`: a process that has said its word and waits."""
    processes: list[subprocess.Popen[bytes]] = []

    def start(program: str, file: Path) -> subprocess.Popen[bytes]:
        pipe = subprocess.PIPE
        process = subprocess.Popen(
            [sys.executable, "-c", program, str(file)], stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL
        )
        processes.append(process)
        assert process.stdout is not None
        assert process.stdout.readline()
        return process

    yield start
    for process in processes:
        process.kill()
        process.communicate()


def test_a_killed_process_lives_no_more(python: Callable[..., subprocess.Popen[bytes]], tmp_path: Path) -> None:
    file = tmp_path / "life"
    assert not is_alive(file)
    living = python(LIVING, file)
    assert is_alive(file)
    living.kill()
    living.wait()
    assert not is_alive(file)


def test_a_job_ends_when_its_task_was_killed(python: Callable[..., subprocess.Popen[bytes]], tmp_path: Path) -> None:
    living = python(LIVING, tmp_path / "life")
    job = python(WANTED, tmp_path / "life")
    assert job.poll() is None
    living.kill()
    assert job.wait(600) == EXIT_CODE


@pytest.mark.parametrize(("code", "refused"), [(errno.EBADF, True), (errno.ENOTSUP, False), (errno.ENOLCK, False)])
def test_a_file_system_that_locks_only_what_one_may_write_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int, *, refused: bool
) -> None:
    def fail(_descriptor: int, _how: int) -> None:
        raise OSError(code, os.strerror(code))

    table = ParquetTable(str(tmp_path / "lake"))
    table.claim(OWN)
    monkeypatch.setattr(fcntl, "flock", fail)
    with pytest.raises(SinkError, match="must be writable") if refused else nullcontext():
        table.claim(OWN)


def test_a_life_that_ended_leaves_nothing(tmp_path: Path) -> None:
    with (life := ProcessLock(tmp_path / "life")).held():
        life.begin()
        assert is_alive(tmp_path / "life")
    life.end()
    assert not list(tmp_path.iterdir())


def staged(lake: Path, rows: int) -> tuple[ParquetWriter, list[DataFile]]:
    """An attempt that has staged its rows and is about to commit."""
    writer = ParquetWriter(ParquetSink(str(lake)), HOUR, OWN)
    table = pa.table({"number": range(rows)})
    return writer, write_table(table, writer.open(table.schema))


def landed(lake: Path) -> int:
    return pq.read_table(ParquetTable(str(lake)).folder_of(HOUR)).num_rows


def test_two_attempts_at_one_window_leave_each_other_alone(tmp_path: Path) -> None:
    (late, its), (retry, theirs) = staged(tmp_path, 2), staged(tmp_path, 3)
    late.commit(its, RECEIPT)
    assert landed(tmp_path) == 2
    retry.commit(theirs, RECEIPT)
    assert landed(tmp_path) == 3
    assert not list((tmp_path / "_staging").iterdir())


def test_what_a_dead_attempt_staged_is_removed_and_never_put_in_place(tmp_path: Path) -> None:
    (dead, its), (retry, theirs) = staged(tmp_path, 2), staged(tmp_path, 3)
    dead._lock.end()
    retry.commit(theirs, RECEIPT)
    assert not list((tmp_path / "_staging").iterdir())
    with pytest.raises(SinkError):
        dead.commit(its, RECEIPT)
    assert landed(tmp_path) == 3


def test_windows_of_one_second_have_a_life_each(tmp_path: Path) -> None:
    """Staged in one pass by one process: a common lock would be waited for without end."""
    start = HOUR.start + timedelta(milliseconds=250)
    windows = [Window(start + number * timedelta(milliseconds=250), HOUR.end) for number in range(3)]
    writers = [ParquetWriter(ParquetSink(str(tmp_path)), window, OWN) for window in windows]
    assert len({writer._lock._file for writer in writers}) == len(windows)
