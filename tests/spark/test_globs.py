"""Engines that take every Parquet file below a table's folder find the rows of its windows, and nothing else."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from airflow_provider_streams import ParquetSink
from airflow_provider_streams.lake.parquet.hidden_files import exchange_folder
from airflow_provider_streams.lake.parquet.writer import ParquetWriter
from airflow_provider_streams.model.plan.receipt import Receipt, SplitReceipt
from airflow_provider_streams.spark.quarantine.quarantine_files import QuarantineFile
from tests.integration.lake.landing import TERMS, Attempt, hour, land, rows_of
from tests.integration.lake.test_kills import killed

NEWER = "b" * 32
RENEWED = replace(TERMS, mark=replace(TERMS.mark, id=NEWER), set_aside=True)


@pytest.fixture
def sink(tmp_path):
    """A table of two windows."""
    made = ParquetSink(str(tmp_path / "orders"))
    land(made, hour(0), rows_of(0, 3))
    land(made, hour(1), rows_of(3, 2))
    return made


@pytest.fixture
def found(sink, spark):
    """The ids that all engines find."""

    def ask():
        everything = f"{sink.path}/**/*.parquet"
        files = sorted(map(str, Path(sink.path).rglob("*.parquet")))
        if not files:
            return []
        reader = spark.read.option("recursiveFileLookup", "true")
        seen = {
            "duckdb": [one for (one,) in duckdb.sql(f"SELECT id FROM read_parquet('{everything}')").fetchall()],  # noqa: S608
            "polars": pl.scan_parquet(everything, extra_columns="ignore").select("id").collect()["id"].to_list(),
            "pyarrow": ds.dataset(files).to_table(columns=["id"])["id"].to_pylist(),
            "spark": [one.id for one in reader.parquet(sink.path).select("id").collect()],
            "spark, by files": [one.id for one in reader.parquet(*files).select("id").collect()],
        }
        answers = {engine: sorted(ids) for engine, ids in seen.items()}
        assert list(answers.values()) == [answers["duckdb"]] * len(answers), answers
        return answers["duckdb"]

    return ask


def test_what_is_being_written_is_not_found(sink, found):
    attempt = Attempt(sink, hour(0), rows_of(10, 4)).write()
    assert found() == [0, 1, 2, 3, 4]
    attempt.commit()
    assert found() == [3, 4, 10, 11, 12, 13]


def test_what_was_set_aside_is_not_found_and_can_be_read(sink, found):
    Attempt(sink, hour(0), rows_of(7, 1), RENEWED).land()
    assert found() == [7]
    kept = f"{sink.path}/_set_aside/*/window_start=*/window_end=*/*.parquet.aside"
    aside = duckdb.sql(f"SELECT id, window_start FROM read_parquet('{kept}', hive_partitioning = true)").fetchall()  # noqa: S608
    assert {id_: str(start) for id_, start in aside} == {
        **dict.fromkeys((0, 1, 2), "20261120T120000Z"),
        **dict.fromkeys((3, 4), "20261120T130000Z"),
    }


def test_windows_whose_numbers_became_wider_are_one_table(sink, found):
    land(sink, hour(0), pa.table({"id": pa.array([1], pa.int32())}), mark=RENEWED.mark, set_aside=True)
    land(sink, hour(1), pa.table({"id": pa.array([2], pa.int32())}), mark=RENEWED.mark)
    land(sink, hour(2), pa.table({"id": pa.array([2**40], pa.int64())}), mark=RENEWED.mark)
    assert found() == [1, 2, 2**40]


def test_windows_that_made_room_are_not_found(sink, found):
    land(sink, hour(0, hours=2), rows_of(10, 1), replace_overlaps=True)
    assert found() == [10]


def test_quarantined_events_are_not_found(sink, found):
    writer = ParquetWriter(sink, hour(0), TERMS)
    files = QuarantineFile(str(writer.open_quarantine()), 0)
    files.write(pa.record_batch({"id": pa.array([99], pa.int64())}))
    name = files.finish()
    writer.open(rows_of(0, 1).schema)
    assert found() == [0, 1, 2, 3, 4]
    writer.commit([], Receipt("plan", (SplitReceipt(0, quarantined=1, quarantine_file=name),), 1.0, "complete"))
    assert found() == [3, 4]
    (kept,) = Path(sink.path).rglob("*.quarantine")
    assert pq.read_table(pa.BufferReader(kept.read_bytes()))["id"].to_pylist() == [99]


@pytest.mark.slow_except("writing-terms0-left0", "exchanged-terms5-left5")
@pytest.mark.parametrize(
    ("step", "terms", "left"),
    [
        ("writing", {}, [0, 1, 2, 3, 4]),
        ("committing", {}, [0, 1, 2, 3, 4]),
        ("exchanged", {}, [3, 4, 10]),
        ("committed", {}, [3, 4, 10]),
        ("committing", {"mark": NEWER, "set_aside": True}, []),
        ("exchanged", {"mark": NEWER, "set_aside": True}, [10]),
        ("exchanged", {"replace_overlaps": True, "hours": 2}, [10]),
    ],
)
def test_a_kill_leaves_nothing_that_is_found_in_addition_to_the_windows(sink, found, step, terms, left):
    hours = terms.get("hours", 1)
    own = {name: value for name, value in terms.items() if name != "hours"}
    killed([(sink, step)], {}, window=[0, hours], ids=[10], terms=own)
    assert found() == left
    land(sink, hour(5), rows_of(20, 1), mark=RENEWED.mark if "mark" in own else TERMS.mark)
    assert found() == sorted([*left, 20])
    assert not exchange_folder(Path(sink.path)).exists()


def test_where_the_parent_folder_cannot_be_used_windows_are_exchanged_in_staging(sink, found):
    """As on a mount point: here a file is in the way."""
    exchange_folder(Path(sink.path)).touch()
    land(sink, hour(0), rows_of(10, 1))
    assert found() == [3, 4, 10]
    killed([(sink, "committing")], {}, ids=[11])
    land(sink, hour(5), rows_of(20, 1))
    assert found() == [3, 4, 10, 20]
