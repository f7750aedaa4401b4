"""Streams of database changes land as tables of changes. Debezium writes no keys there: rows have them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
import pytest
from deltalake import DeltaTable

from airflow_provider_streams import AutoCdc, Canal, Debezium, DeltaSink, Maxwell, ParquetSink, PravegaSource
from airflow_provider_streams.errors import SinkError
from airflow_provider_streams.journal.store import Journal
from airflow_provider_streams.model.window.basis import Cuts
from airflow_provider_streams.model.window.window import Window
from airflow_provider_streams.testing.landing import cover_without_spark
from airflow_provider_streams.testing.pravega_writer import PravegaWriter
from tests.unit.formats.change_data.debezium_messages import SOURCE, change, raw
from tests.unit.formats.change_data.test_mysql_json import CANAL, MAXWELL

pytestmark = pytest.mark.pravega

NOON = datetime(2026, 11, 20, 12, tzinfo=UTC)
WINDOW = Window(NOON, NOON + timedelta(hours=1))

Land = Callable[..., tuple[Any, list[dict[str, Any]]]]


@pytest.fixture
def land(lab: Any, stream: str, pravega_server: Any, tmp_path: Path) -> Iterator[Land]:
    """Writes messages, lands all of them, and reads the table."""
    options = {"controller_uri": pravega_server.controller_uri}
    with Journal(f"sqlite:///{tmp_path / 'journal.db'}") as journal:

        def landed(messages: list[Any], value: Any, sink: Any = None) -> tuple[Any, list[dict[str, Any]]]:
            sink = sink or ParquetSink(str(tmp_path / "lake"))
            with PravegaWriter(lab.system.endpoint, stream) as writer:
                writer.write(("key", raw(one) or b"") for one in messages)
            source = PravegaSource(stream, value=value)
            found = cover_without_spark(
                journal, source, WINDOW, "reader", options, sink=sink, basis=Cuts("earliest", "latest")
            )
            if isinstance(sink, DeltaSink):
                return found, pa.table(DeltaTable(sink.path).to_pyarrow_table()).sort_by("id").to_pylist()
            table = ds.dataset(sink.path, partitioning="hive", exclude_invalid_files=True).to_table()
            return found, sorted(table.to_pylist(), key=lambda row: row["_position"])

        yield landed


def test_changes_become_rows_in_their_order(land: Land) -> None:
    messages = [
        change("c", {"id": 1, "name": "a"}), {"ts_ms": 1}, change("u", {"id": 1, "name": "b"}),
        change("d", None, {"id": 1, "name": None}), change("t"),
    ]  # fmt: skip
    landed, rows = land(messages, Debezium())
    assert [(row["_op"], row["id"], row["name"]) for row in rows] == [
        ("c", 1, "a"), ("u", 1, "b"), ("d", 1, None), ("t", None, None),
    ]  # fmt: skip
    assert landed.receipt.kinds == {"heartbeat": 1, "truncate": 1}
    assert {row["_stream"] for row in rows} != {None}


def test_a_column_that_comes_midway_is_landed_exactly_once(land: Land) -> None:
    few = [change("c", {"id": number}) for number in range(40)]
    landed, rows = land([*few, change("c", {"id": 40, "city": "Bonn"}), *few], Debezium())
    assert len(rows) == landed.receipt.rows == 81
    assert [row["city"] for row in rows if row["city"]] == ["Bonn"]


@pytest.mark.parametrize(("message", "value", "ids"), [(CANAL, Canal(), [111, 112]), (MAXWELL, Maxwell(), [1])])
def test_canal_and_maxwell(land: Land, message: Any, value: Any, ids: list[int]) -> None:
    landed, rows = land([message], value)
    assert [row["id"] for row in rows] == ids
    assert landed.receipt.rows == len(ids)


def test_changes_are_applied_by_the_keys_that_the_sink_names(land: Land, tmp_path: Path) -> None:
    messages = [
        change(op, after, before, source={**SOURCE, "lsn": lsn, "ts_us": SOURCE["ts_us"] + lsn})
        for lsn, (op, after, before) in enumerate(
            [
                ("c", {"id": 1, "name": "a"}, None),
                ("c", {"id": 2, "name": "a"}, None),
                ("u", {"id": 1, "name": "b"}, None),
                ("d", None, {"id": 2, "name": None}),
                ("r", {"id": 3, "name": "s"}, None),
            ]
        )
    ]
    sink = DeltaSink(str(tmp_path / "table"), apply=AutoCdc())
    with pytest.raises(SinkError, match=r"apply=AutoCdc\(keys=\['id'\]\)"):
        land(messages, Debezium(), sink)
    landed, rows = land([], Debezium(), replace(sink, apply=AutoCdc(keys=["id"])))
    assert landed.receipt.rows == 5
    assert [(row["id"], row["name"]) for row in rows] == [(1, "b"), (3, "s")]
    assert "_stream" not in rows[0]
