"""A topic's schema grows: what was planned before lands as it did, what is planned now has all columns."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
import pytest
from deltalake import DeltaTable

from airflow_provider_streams import DeltaSink, IcebergSink, ParquetSink, PublishTime, PulsarSource, Window
from airflow_provider_streams.airflow_runtime.spark_launch import launch
from airflow_provider_streams.errors import DecodeError, LandingMismatch, TaskCancelled
from airflow_provider_streams.journal.runs.run_records import TaskInstanceKey
from airflow_provider_streams.journal.store import Journal
from airflow_provider_streams.lake.connections import given
from airflow_provider_streams.lake.iceberg.catalogs.catalog import catalog_of
from airflow_provider_streams.model.schema.decode_errors import DecodeErrorPolicy, OnDecodeError
from airflow_provider_streams.model.schema.payload import Auto, PayloadLike
from airflow_provider_streams.model.sinks.landing import Landed, Landing
from airflow_provider_streams.spark.settings.spark_settings import SMALL_PLAN_BYTES
from airflow_provider_streams.testing.landing import context_without_spark
from airflow_provider_streams.windows.claim.overrides import Overrides
from airflow_provider_streams.windows.run.request import OneWindow, ReadRequest
from airflow_provider_streams.windows.run.window_run import WindowRun
from stream_servers.waiting import wait_until
from tests.integration.pulsar.conftest import written_from

pytestmark = pytest.mark.pulsar

SLACK = PublishTime(timedelta(milliseconds=50))
ID = {"name": "id", "type": "long"}
NOTE = {"name": "note", "type": ["null", "string"], "default": None}
RANK = {"name": "rank", "type": "int", "default": 7}
CITY, ZIP = {"name": "city", "type": "string"}, {"name": "zip", "type": "string", "default": "?"}
X_TEXT, X_INT = {"name": "x", "type": "string"}, {"name": "x", "type": "int"}
RENAMED = {"name": "number", "type": "long", "aliases": ["id"]}


def to(*fields: dict[str, Any]) -> tuple[dict[str, Any], ...]:
    """A record in a record, and in a list."""
    lines = {
        "name": "lines",
        "type": {"type": "array", "items": {"type": "record", "name": "Line", "fields": [*fields]}},
    }
    return ID, {"name": "to", "type": {"type": "record", "name": "To", "fields": [*fields]}}, lines


@dataclass
class Topic:
    """One that is written by one schema after another, and the task that reads it."""

    bench: Any
    sink: Any
    folder: Path
    windows: list[Window] = field(default_factory=list)
    written: int = 0

    def __post_init__(self) -> None:
        self.name = self.bench.topic("orders")
        self.edge = written_from()

    def register(self, *fields: dict[str, Any]) -> None:
        """The next version of its schema."""
        text = json.dumps({"type": "record", "name": "Order", "fields": fields})
        body = {"type": "AVRO", "schema": text, "properties": {}}
        self.bench.server.admin("POST", f"schemas/{self.name.removeprefix('persistent://')}/schema", body)

    def allow_all(self) -> None:
        """Schemas need not fit those before."""
        path = f"namespaces/{self.bench.namespace}/schemaCompatibilityStrategy"
        self.bench.server.admin("PUT", path, "ALWAYS_COMPATIBLE")

    def write(self, *fields: dict[str, Any], count: int = 3) -> Window:
        """Events of a schema, in a window of their own."""
        from pulsar.schema import AvroSchema

        schema = AvroSchema(None, schema_definition={"type": "record", "name": "Order", "fields": list(fields)})
        producer = self.bench.client.create_producer(self.name, schema=schema)
        for number in range(self.written, self.written + count):
            inner = {"city": "c", "zip": "z"}
            values = {
                "id": number,
                "number": number,
                "note": f"note {number}",
                "rank": 1,
                "to": inner,
                "lines": [inner],
                "x": "seven" if X_TEXT in fields else 7,
                "whole": 2**40 if {"name": "whole", "type": "long"} in fields else 1,
            }
            producer.send({one["name"]: values[one["name"]] for one in fields})
        producer.close()
        self.written += count
        start, self.edge = self.edge, datetime.now(UTC) + timedelta(milliseconds=20)
        wait_until(lambda: datetime.now(UTC) > self.edge + timedelta(milliseconds=60), "the window's end")
        self.windows.append(Window(start, self.edge))
        return self.windows[-1]

    def read(
        self,
        window: Window,
        spark: Any = None,
        value: PayloadLike = "auto",
        bad: OnDecodeError = "fail",
        **overrides: Any,
    ) -> Landed:
        """One run of the task."""
        source = PulsarSource(self.name, value=value)
        options = {"service_url": self.bench.server.service_url, "admin_url": self.bench.server.admin_url}
        with Journal(f"sqlite:///{self.folder / 'journal.db'}") as journal:
            place = context_without_spark(journal, "pulsar", options)
            place = replace(place, spark=spark or launch, small_plan_bytes=SMALL_PLAN_BYTES)
            request = ReadRequest(
                *(
                    source,
                    "dag.read",
                    OneWindow(window),
                    TaskInstanceKey("dag", "run", "read", 1),
                    Landing(self.sink),
                    SLACK,
                ),
                undecodable=DecodeErrorPolicy(bad),
                overrides=Overrides(**overrides),
            )
            run = WindowRun(place, request)
            outcome = run.land(run.prepare(), lambda *_: None)
            outcome.check(request)
            return outcome.landed[0][2]

    def fail(self, window: Window) -> None:
        """One run of the task that ends when its plan is pinned."""

        def end(_work: Any) -> Any:
            raise TaskCancelled

        with pytest.raises(TaskCancelled):
            self.read(window, end)

    def rows(self, *names: str) -> list[dict[str, Any]]:
        """What the table holds in some columns."""
        found = _table(self.sink).to_pylist()
        wanted = ("id", *(names or ("note", "rank")))
        named = [{name: value for name, value in row.items() if name in wanted} for row in found]
        return sorted(named, key=lambda row: row["id"])


def _table(sink: Any) -> pa.Table:
    match sink:
        case ParquetSink():
            files = ds.dataset(sink.path, format="parquet", exclude_invalid_files=True).files
            return pa.concat_tables([ds.dataset(file).to_table() for file in files], promote_options="default")
        case DeltaSink():
            return DeltaTable(sink.path).to_pyarrow_table()
    return catalog_of(sink).load_table(sink.table).scan().to_arrow()


@pytest.fixture(params=["parquet", "delta", "iceberg"])
def topic(request: Any, bench: Any, tmp_path: Path) -> Iterator[Topic]:
    sinks = {
        "parquet": ParquetSink(str(tmp_path / "lake")),
        "delta": DeltaSink(str(tmp_path / "lake"), widen=True),
        "iceberg": IcebergSink("lake.orders", conn_id="iceberg_test", widen=True),
    }
    (tmp_path / "warehouse").mkdir()
    catalog = {
        "type": "sql",
        "uri": f"sqlite:///{tmp_path}/catalog.db",
        "warehouse": f"file://{tmp_path}/warehouse",
    }
    with ExitStack() as stack:
        stack.enter_context(given("iceberg_test", catalog))
        yield Topic(bench, sinks[request.param], tmp_path)


@pytest.mark.slow_except("delta")
def test_a_window_of_an_older_schema_lands_again_as_it_did(topic: Topic) -> None:
    first = topic.write(ID)
    topic.read(first)
    second = topic.write(ID, NOTE)
    topic.read(second)
    before = topic.rows()
    assert [row.get("note") for row in before] == [None] * 3 + ["note 3", "note 4", "note 5"]
    assert topic.read(first).receipt.rows == 3
    assert topic.rows() == before


@pytest.mark.slow
def test_what_was_planned_before_and_never_landed_lands_beside_the_wider_rows(topic: Topic) -> None:
    first = topic.write(ID)
    topic.read(first)
    second = topic.write(ID)
    topic.fail(second)
    topic.read(topic.write(ID, NOTE))
    topic.read(second)
    notes = [None] * 6 + ["note 6", "note 7", "note 8"]
    assert topic.rows() == [{"id": number, "note": note} for number, note in enumerate(notes)]


@pytest.mark.slow_except("parquet")
def test_a_hole_that_is_planned_now_has_all_columns(topic: Topic) -> None:
    """Its events were written by the older schema: they get what the newest one gives to them."""
    first, hole, last = topic.write(ID), topic.write(ID), topic.write(ID, NOTE, RANK)
    topic.read(first)
    topic.read(last)
    topic.read(hole)
    for _ in range(2):
        ranks = [row["rank"] for row in topic.rows()]
        assert ranks == [7] * 6 + [1] * 3
        topic.read(first)
        topic.read(hole)


@pytest.mark.slow
@pytest.mark.parametrize("topic", ["parquet"], indirect=True)
@pytest.mark.parametrize("fields", [(NOTE, RANK), (RENAMED, NOTE)])
def test_what_is_planned_now_and_lacks_a_column_is_refused_however_often(topic: Topic, fields: Any) -> None:
    """Its schema dropped a field, or gave it another name; a later version does not make that an older plan."""
    topic.allow_all()
    topic.read(topic.write(ID, NOTE))
    before = topic.rows()
    lacking = topic.write(*fields)
    for _ in range(2):
        with pytest.raises(LandingMismatch, match="id is missing, it was bigint"):
            topic.read(lacking)
        topic.register(*fields, {"name": "more", "type": "long", "default": 0})
    assert topic.rows() == before


@pytest.mark.slow_except("iceberg")
def test_structs_that_grow_inside_are_as_columns_that_come(topic: Topic) -> None:
    first, pinned, hole = topic.write(*to(CITY)), topic.write(*to(CITY)), topic.write(*to(CITY))
    topic.read(first)
    topic.fail(pinned)
    last = topic.write(*to(CITY, ZIP))
    for window in (last, first, pinned, hole, last):
        assert topic.read(window).receipt.rows == 3
    zips = [None] * 6 + ["?"] * 3 + ["z"] * 3
    assert [row["to"] for row in topic.rows("to")] == [{"city": "c", "zip": found} for found in zips]
    assert [row["lines"] for row in topic.rows("lines")] == [[{"city": "c", "zip": found}] for found in zips]
    topic.read(pinned, replan=True)
    zips = [None] * 3 + ["?"] * 6 + ["z"] * 3
    assert [row["to"]["zip"] for row in topic.rows("to")] == zips


@pytest.mark.parametrize("topic", ["parquet"], indirect=True)
def test_a_struct_that_shrank_is_refused_however_often(topic: Topic) -> None:
    topic.allow_all()
    topic.read(topic.write(*to(CITY, ZIP)))
    before = topic.rows("to")
    lacking = topic.write(*to(CITY))
    for _ in range(2):
        with pytest.raises(LandingMismatch, match=r"to\.zip is missing, it was string.*lines\.element\.zip is missing"):
            topic.read(lacking)
    assert topic.rows("to") == before


@pytest.mark.slow_except("delta")
def test_a_dropped_field_spoils_no_window_and_is_landed_anew(topic: Topic) -> None:
    topic.allow_all()
    first = topic.write(ID, NOTE)
    topic.read(first)
    before = topic.rows()
    second = topic.write(ID, RANK)
    for window, overrides in ((first, {"replan": True}), (second, {})):
        with pytest.raises(LandingMismatch, match="note is missing, it was string"):
            topic.read(window, **overrides)
    topic.read(first)
    assert topic.rows() == before
    for window in (second, first, second):
        topic.read(window, full_refresh=True)
    assert [(row["id"], row["rank"], row.get("note")) for row in topic.rows()] == [
        (number, 7 if number < 3 else 1, None) for number in range(6)
    ]


@pytest.mark.slow
@pytest.mark.parametrize("topic", ["parquet"], indirect=True)
def test_a_window_of_versions_that_do_not_fit_lands_by_each_way_that_its_error_names(topic: Topic) -> None:
    topic.allow_all()
    first, second = topic.write(ID, X_TEXT, count=1), topic.write(ID, X_INT, count=1)
    both = Window(first.start, second.end)
    with pytest.raises(DecodeError) as refused:
        topic.read(both)
    ways = ("on_decode_error='quarantine'", "value=Auto(version='0')", "value=Auto(as_text=True)", "full_refresh=True")
    assert [way for way in ways if way not in str(refused.value)] == []
    for value, bad, landed in (
        (Auto(), "quarantine", [(1, 7)]),
        (Auto(version="0"), "quarantine", [(0, "seven")]),
        (Auto(as_text=True), "fail", [(0, "seven"), (1, "7")]),
    ):
        receipt = topic.read(both, value=value, bad=bad, full_refresh=True).receipt
        assert [(row["id"], row["x"]) for row in topic.rows("x")] == landed
        assert receipt.totals["quarantined"] == 2 - len(landed)


@pytest.mark.slow
@pytest.mark.parametrize("topic", ["parquet"], indirect=True)
def test_a_reader_that_landed_before_an_incompatible_version_goes_on_by_each_way(topic: Topic) -> None:
    topic.allow_all()
    first = topic.write(ID, X_TEXT, count=1)
    topic.read(first)
    second = topic.write(ID, X_INT, count=1)
    with pytest.raises(LandingMismatch, match="x is int instead of string") as refused:
        topic.read(second)
    ways = ("value=Auto(version='0'), with replan=True", "value=Auto(as_text=True), with replan=True")
    assert [way for way in ways if way not in str(refused.value)] == []
    topic.read(second, value=Auto(version=0), bad="quarantine", replan=True)
    assert [(row["id"], row["x"]) for row in topic.rows("x")] == [(0, "seven")]
    for window in (second, first):
        topic.read(window, value=Auto(as_text=True), replan=True)
    assert [(row["id"], row["x"]) for row in topic.rows("x")] == [(0, "seven"), (1, "7")]
    for window in (second, first):
        topic.read(window, value=Auto(), bad="quarantine", full_refresh=True)
    assert [(row["id"], row["x"]) for row in topic.rows("x")] == [(1, 7)]


@pytest.mark.slow
def test_numbers_that_become_wider_and_windows_of_older_plans_are_one_table(topic: Topic) -> None:
    topic.allow_all()
    narrow, wide = ({"name": "whole", "type": one} for one in ("int", "long"))
    first, pinned, late = topic.write(ID, narrow), topic.write(ID, narrow), topic.write(ID, narrow)
    topic.read(first)
    topic.fail(pinned)
    last = topic.write(ID, wide)
    for window in (last, first, pinned, late, last):
        assert topic.read(window).receipt.rows == 3
    assert [row["whole"] for row in topic.rows("whole")] == [1] * 9 + [2**40] * 3
