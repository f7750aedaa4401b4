"""Data files of one task: row groups are written on another thread, in order, and their errors are not lost."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from threading import get_ident

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from airflow_provider_streams.errors import SinkError
from airflow_provider_streams.lake import data_files
from airflow_provider_streams.lake.data_files import VIEWS, DataFile, FileTarget, WindowFiles
from airflow_provider_streams.lake.storage import Storage

SCHEMA = pa.schema([("number", pa.int64())])
ROWS = 1000
GROUP_BYTES = 5 * ROWS * 8


def target_of(folder: Path, *, file_bytes: int = 1 << 30) -> FileTarget:
    return FileTarget(
        Storage(f"file://{folder}"), "", "part-", SCHEMA, row_group_bytes=GROUP_BYTES, file_bytes=file_bytes
    )


def batches(count: int) -> Iterator[pa.RecordBatch]:
    for number in range(count):
        yield pa.record_batch([pa.array(range(number * ROWS, (number + 1) * ROWS))], schema=SCHEMA)


def write_all(made: WindowFiles, count: int) -> list[DataFile]:
    for batch in batches(count):
        made.write(batch)
    return made.finish()


@pytest.mark.parametrize("file_bytes", [1, 1 << 30])
def test_rows_keep_their_order_over_row_groups_and_files(tmp_path: Path, file_bytes: int) -> None:
    with closing(WindowFiles(target_of(tmp_path, file_bytes=file_bytes))) as made:
        told = write_all(made, 23)

    tables = [pq.read_table(tmp_path / one.path) for one in told]
    assert pa.concat_tables(tables).column(0).to_pylist() == list(range(23 * ROWS))
    assert [one.rows for one in told] == [len(table) for table in tables]
    assert len(told) == (5 if file_bytes == 1 else 1)
    groups = [pq.ParquetFile(tmp_path / one.path).num_row_groups for one in told]
    assert groups == ([1] * 5 if file_bytes == 1 else [5])


def test_full_row_groups_are_written_while_the_task_reads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    threads: list[int] = []
    write = data_files.stored_rows
    monkeypatch.setattr(data_files, "stored_rows", lambda *given: (threads.append(get_ident()), write(*given))[1])

    with closing(WindowFiles(target_of(tmp_path))) as made:
        write_all(made, 11)

    assert len(threads) == 3
    assert get_ident() not in threads[:2]
    assert threads[2] == get_ident()  # what is left is not worth a thread


@pytest.mark.parametrize("more", [0, 5])
def test_an_error_of_a_row_group_reaches_the_task(tmp_path: Path, more: int) -> None:
    """It comes with the next row group, or with the end; no task reports a window as written."""
    folder = tmp_path / "window"
    folder.mkdir()
    made = WindowFiles(target_of(folder, file_bytes=1))
    for batch in batches(5):
        made.write(batch)
    made._wait()
    shutil.rmtree(folder)
    for batch in batches(5):
        made.write(batch)  # its file cannot be made, which is not known yet

    with pytest.raises(SinkError, match="cannot be written"):
        write_all(made, more)
    if more:
        with pytest.raises(SinkError, match="cannot be written"):
            made.finish()
    made.close()
    assert not folder.exists()


def test_nothing_is_left_when_the_reading_fails_meanwhile(tmp_path: Path) -> None:
    made = WindowFiles(target_of(tmp_path, file_bytes=1))
    for batch in batches(5 * 4):
        made.write(batch)
    assert list(tmp_path.iterdir())

    made.close()  # with a row group under way

    assert not list(tmp_path.iterdir())


@pytest.mark.skipif(not VIEWS, reason="this release of Arrow cannot write them")
@pytest.mark.parametrize("wanted", [pa.binary(), pa.large_binary()])
def test_views_are_written_as_binary_and_counted_by_their_own_bytes(tmp_path: Path, wanted: pa.DataType) -> None:
    """Arrow counts the whole memory that they point into, and would make a row group of each batch."""
    values = [None, b"", b"short"] + [b"%030d" % number for number in range(1000)]
    whole = pa.array(values, pa.binary()).cast(pa.binary_view())
    schema = pa.schema([pa.field("value", wanted, metadata={b"PARQUET:field_id": b"7"})])
    target = FileTarget(Storage(f"file://{tmp_path}"), "", "part-", schema, row_group_bytes=2 * len(values) * 46)

    with closing(WindowFiles(target)) as made:
        for _ in range(3):
            for begin in range(0, len(values), 100):
                made.write(pa.record_batch([whole[begin : begin + 100]], names=["value"]))
        (told,) = made.finish()

    file = pq.ParquetFile(tmp_path / told.path)
    assert file.read().column("value").to_pylist() == values * 3
    assert file.schema_arrow.field("value").type == pa.binary()
    assert file.schema_arrow.field("value").metadata == {b"PARQUET:field_id": b"7"}
    assert file.num_row_groups == 2
