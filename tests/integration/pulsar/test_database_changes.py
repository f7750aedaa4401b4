"""Topics of database changes land as tables of changes: the columns come from messages, or from the topic's schema."""

from __future__ import annotations

import json
import struct
from base64 import b64encode
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow.dataset as ds
import pytest

from airflow_provider_streams import Canal, Debezium, Maxwell, ParquetSink, PulsarSource
from airflow_provider_streams.errors import InvalidSchema
from airflow_provider_streams.journal.runs.run_records import TaskInstanceKey
from airflow_provider_streams.journal.store import Journal
from airflow_provider_streams.model.schema.decode_errors import DecodeErrorPolicy
from airflow_provider_streams.model.window.basis import Cuts, EventTime
from airflow_provider_streams.model.window.window import Window
from airflow_provider_streams.systems.pulsar.system import PulsarSystem
from airflow_provider_streams.systems.system_pool import SystemPool
from airflow_provider_streams.testing.landing import context_without_spark, cover_without_spark
from airflow_provider_streams.windows.after_landing.quarantine_replay import Replayer
from airflow_provider_streams.windows.tail.tail import Tail
from tests.integration.pulsar.raw_producer import RawProducer, metadata
from tests.unit.formats.change_data.debezium_messages import (
    SOURCE,
    change,
    decimal_field,
    field,
    key_of,
    raw,
    schema_of,
    with_schema,
)
from tests.unit.formats.change_data.test_mysql_json import CANAL, MAXWELL
from tests.unit.formats.change_data.test_typed import ENVELOPE, NULLS, written

pytestmark = pytest.mark.pulsar

NOON = datetime(2026, 11, 20, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)
WINDOW, NEXT = Window(NOON, NOON + HOUR), Window(NOON + HOUR, NOON + 2 * HOUR)
ALL = Cuts("earliest", "latest")
AVRO = {"type": "AVRO", "schema": json.dumps(ENVELOPE), "properties": {}}
TRANSACTION = {"status": "END", "id": "7", "event_count": 2, "ts_ms": 1, "data_collections": []}


class Reader:
    """Lands windows of topics, all into one table."""

    def __init__(self, bench: Any, folder: Path) -> None:
        self.bench = bench
        self.journal = Journal(f"sqlite:///{folder / 'journal.db'}")
        self.sink = ParquetSink(str(folder / "lake"))
        self.options = {"service_url": bench.server.service_url, "admin_url": bench.server.admin_url}

    def topic(self, *messages: Any, keys: bool = True, **schema: Any) -> str:
        """A topic of these messages. Each has the same key."""
        topic = self.bench.topic("changes")
        if schema:
            self.bench.server.admin("POST", f"schemas/{topic.removeprefix('persistent://')}/schema", schema)
        self.write(topic, *messages, keys=keys)
        return topic

    def write(self, topic: str, *messages: Any, keys: bool = True) -> None:
        values = [raw(one) or b"" for one in messages]
        send = {"send": lambda _: {"partition_key": key_of(id=1).decode()}} if keys else {}
        self.bench.write(topic, values, **send)

    def cover(self, source: PulsarSource, window: Window = WINDOW, then: str = "fail", **others: Any) -> Any:
        how = {"sink": self.sink, "undecodable": DecodeErrorPolicy(then), "basis": ALL, **others}  # type: ignore[arg-type]
        return cover_without_spark(self.journal, source, window, "reader", self.options, **how)

    def rows(self) -> list[dict[str, Any]]:
        found = ds.dataset(self.sink.path, partitioning="hive", exclude_invalid_files=True).to_table().to_pylist()
        return sorted(found, key=lambda row: row["_position"])


@pytest.fixture
def reader(bench: Any, tmp_path: Path) -> Iterator[Reader]:
    made = Reader(bench, tmp_path)
    with made.journal:
        yield made


def test_changes_become_rows_with_their_metadata_and_each_message_is_counted(reader: Reader) -> None:
    topic = reader.topic(
        change("r", {"id": 1, "name": "a"}), change("u", {"id": 1, "name": "b"}), b"", {"ts_ms": 1}, TRANSACTION,
        change("t"), change("d", None, {"id": 1, "name": None}),
    )  # fmt: skip
    landed = reader.cover(PulsarSource(topic, value=Debezium()))
    rows = reader.rows()
    assert [(row["_op"], row["id"], row["name"]) for row in rows] == [
        ("r", 1, "a"), ("u", 1, "b"), ("t", None, None), ("d", 1, None),
    ]  # fmt: skip
    assert {row["_table"] for row in rows} == {"public.orders"}
    assert {row["_total_order"] for row in rows} == {3}
    assert rows[0]["_source_ts"] == datetime(2025, 11, 11, 22, 26, 40, 123456, tzinfo=UTC)
    assert {row["_topic"] for row in rows} == {topic}
    assert landed.receipt.kinds == {"tombstone": 1, "heartbeat": 1, "transaction": 1, "truncate": 1}
    others = sum(count for kind, count in landed.receipt.kinds.items() if kind != "truncate")
    assert landed.receipt.rows + others == 7


def test_the_schema_in_a_message_tells_exact_types(reader: Reader) -> None:
    schema = schema_of(
        [field("id", "int64"), decimal_field("amount", 2), field("day", "int32", "io.debezium.time.Date")]
    )
    message = with_schema(change("c", {"id": 1, "amount": "ASw=", "day": 20_395}), schema)
    reader.cover(PulsarSource(reader.topic(message), value=Debezium()))
    (row,) = reader.rows()
    assert (str(row["amount"]), row["day"].isoformat()) == ("3.00", "2025-11-03")


def test_flattened_rows_are_changes_and_tombstones_their_deletes(reader: Reader) -> None:
    topic = reader.topic({"id": 1, "name": "a", "__op": "c", "__source_ts_ms": 5}, b"")
    reader.cover(PulsarSource(topic, value="debezium"))
    assert [(row["_op"], row["id"]) for row in reader.rows()] == [("c", 1), ("d", 1)]


def test_a_window_without_changes_has_the_columns_that_the_whole_topic_shows(reader: Reader) -> None:
    topic = reader.topic(change("c", {"id": 1, "name": "a"}))
    landed = reader.cover(PulsarSource(topic, value=Debezium()), basis=Cuts("latest", "latest"))
    assert landed.receipt.rows == 0
    assert {"id", "name", "_op"} <= {name for name, _ in landed.schema}


def test_the_next_window_keeps_columns_that_its_own_changes_lack(reader: Reader) -> None:
    topic = reader.topic(change("c", {"id": 1, "name": "a"}))
    source = PulsarSource(topic, value=Debezium())
    reader.cover(source)
    end = reader.journal.pinned(source.key, "reader", WINDOW).end_cut  # type: ignore[union-attr]
    reader.write(topic, change("d", None, {"id": 1}))
    reader.cover(source, NEXT, basis=Cuts(json.dumps(end.to_json()), "latest"))
    assert [(row["_op"], row["name"]) for row in reader.rows()] == [("c", "a"), ("d", None)]


def test_a_topic_that_shows_no_column_names_the_way_to_declare_them(reader: Reader) -> None:
    topic = reader.topic({"ts_ms": 1}, b"")
    with pytest.raises(InvalidSchema, match=r"no message tells.*value=Debezium\('id long"):
        reader.cover(PulsarSource(topic, value=Debezium()))
    landed = reader.cover(PulsarSource(topic, value=Debezium("id long")))
    assert landed.receipt.kinds == {"heartbeat": 1, "tombstone": 1}


def test_avro_tells_the_columns_of_a_window_without_changes(reader: Reader) -> None:
    landed = reader.cover(PulsarSource(reader.topic(**AVRO), value=Debezium()))
    assert dict(landed.schema)["amount"] == "decimal(12,2)"
    assert landed.receipt.rows == 0


def pair(key: bytes | None, value: bytes | None) -> bytes:
    return b"".join(struct.pack(">i", -1) if one is None else struct.pack(">i", len(one)) + one for one in (key, value))


def test_inline_pairs_hold_keys_and_values(reader: Reader) -> None:
    properties = {
        "key.schema.name": "", "key.schema.type": "BYTES", "key.schema.properties": "{}",
        "value.schema.name": "", "value.schema.type": "BYTES", "value.schema.properties": "{}",
        "kv.encoding.type": "INLINE",
    }  # fmt: skip
    schema = {"type": "KEY_VALUE", "schema": '{"key":"","value":""}', "properties": properties}
    messages = [pair(key_of(id=1), raw(change("c", {"id": 1, "name": "a"}))), pair(key_of(id=1), None)]
    topic = reader.topic(*messages, keys=False, **schema)
    landed = reader.cover(PulsarSource(topic, value=Debezium()))
    assert [(row["_op"], row["id"], row["name"]) for row in reader.rows()] == [("c", 1, "a")]
    assert landed.receipt.kinds == {"tombstone": 1}


@pytest.mark.parametrize("how", ["INLINE", "SEPARATED"])
def test_avro_pairs_tell_columns_and_the_key_of_deletes(reader: Reader, how: str) -> None:
    key = {"type": "record", "name": "Key", "fields": [{"name": "id", "type": "long"}]}
    properties = {
        f"{part}.schema.{name}": value
        for part in ("key", "value") for name, value in {"name": "", "type": "AVRO", "properties": "{}"}.items()
    }  # fmt: skip
    parts = {"key": key, "value": json.loads(json.dumps(ENVELOPE))}
    properties["kv.encoding.type"] = how
    topic = reader.topic(type="KEY_VALUE", schema=json.dumps(parts), properties=properties)
    of_key, now = b"\x02", int(datetime.now(UTC).timestamp() * 1000)
    with RawProducer(reader.bench.endpoint, topic) as producer:
        for value in (written("c", {"id": 1, **NULLS, "text": "x"}), written("d")):
            more: dict[str, Any] = {} if how == "INLINE" else {"key": b64encode(of_key), "key_is_base64": 1}
            payload = pair(of_key, value) if how == "INLINE" else value
            producer.send(metadata(now, schema_version=bytes(8), **more), payload)
    landed = reader.cover(PulsarSource(topic, value=Debezium()))
    assert [(row["_op"], row["id"], row["text"]) for row in reader.rows()] == [("c", 1, "x"), ("d", 1, None)]
    assert landed.receipt.rows == 2


@pytest.mark.parametrize(("message", "value", "rows"), [(CANAL, Canal(), [111, 112]), (MAXWELL, Maxwell(), [1])])
def test_canal_and_maxwell_need_no_keys(reader: Reader, message: Any, value: Any, rows: list[int]) -> None:
    landed = reader.cover(PulsarSource(reader.topic(message, keys=False), value=value))
    assert [row["id"] for row in reader.rows()] == rows
    assert landed.receipt.rows == len(rows)


def test_a_column_that_comes_midway_is_landed_exactly_once(reader: Reader) -> None:
    few = [change("c", {"id": number}) for number in range(40)]
    topic = reader.topic(*few, change("c", {"id": 40, "city": "Bonn"}), *few, change("c", {"id": 99}))
    landed = reader.cover(PulsarSource(topic, value=Debezium()))
    rows = reader.rows()
    assert len(rows) == landed.receipt.rows == 82
    assert [row["city"] for row in rows if row["city"]] == ["Bonn"]


@pytest.mark.parametrize("lasting", [True, False])
def test_quarantined_changes_become_rows_by_the_same_decoder(reader: Reader, *, lasting: bool) -> None:
    # without the placeholder that the connector writes, the values of two rows are no numbers
    unset = [change("u", {"id": number, "n": "~"}) for number in (2, 3)]
    topic = reader.topic(change("c", {"id": 1, "n": "7.00"}), *unset, b"{", b"")
    untold = PulsarSource(topic, value=Debezium("id long, n decimal(8, 2)"))
    landed = reader.cover(untold, then="quarantine")
    assert (landed.receipt.rows, landed.receipt.totals["quarantined"]) == (1, 3)
    place = context_without_spark(reader.journal, "pulsar", reader.options)
    told = PulsarSource(topic, value=Debezium("id long, n decimal(8, 2)", placeholder="~"))
    done = Replayer(place, told, "reader", TaskInstanceKey("cli", "me", "replay", 1), lasting=lasting).replay(WINDOW)
    assert (done.rows, done.left) == (2, 1)
    rows = reader.rows()
    assert [(row["id"], row["n"], row["_unavailable"]) for row in rows] == [
        (1, Decimal("7.00"), []), (2, None, ["n"]), (3, None, ["n"]),
    ]  # fmt: skip
    again = reader.cover(
        told if lasting else PulsarSource(topic, value=Debezium("id long, n decimal(8, 2)")), then="quarantine"
    )
    assert (reader.rows(), again.receipt.totals["quarantined"]) == (rows, 1)


def test_avro_changes_land(reader: Reader) -> None:
    topic = reader.topic(**AVRO)
    now = int(datetime.now(UTC).timestamp() * 1000)
    with RawProducer(reader.bench.endpoint, topic) as producer:
        producer.send(metadata(now, schema_version=bytes(8)), written("c", {"id": 1, **NULLS, "text": "x"}))
    landed = reader.cover(PulsarSource(topic, value=Debezium()))
    assert [(row["_op"], row["id"], row["text"]) for row in reader.rows()] == [("c", 1, "x")]
    assert landed.receipt.rows == 1


def test_tail_shows_what_each_message_is_and_columns_that_come_midway(reader: Reader) -> None:
    few = [change("c", {"id": number}) for number in range(30)]
    topic = reader.topic(*few, change("c", {"id": 30, "city": "Bonn"}), *few, {"ts_ms": 1}, b"", b"{")
    with closing(SystemPool(lambda: PulsarSystem.from_options(reader.options))) as systems:
        seen = Tail(systems, PulsarSource(topic, value=Debezium())).last(64)
    assert [(one.kind, one.cause) for one in seen.events[-3:]] == [
        ("heartbeat", ""), ("tombstone", ""), ("", "the value: is not JSON"),
    ]  # fmt: skip
    assert [one.value["city"] for one in seen.events if one.value and one.value["city"]] == ["Bonn"]
    assert seen.events[-3].to_json()["_kind"] == "heartbeat"


def test_changes_land_by_the_time_of_the_database(reader: Reader) -> None:
    at = datetime(2025, 11, 11, 22, tzinfo=UTC)
    topic = reader.topic(change("c", {"id": 1}), b"", change("c", {"id": 2}, source=SOURCE | {"ts_us": 1}))
    late = datetime.now(UTC) - at - HOUR  # they were stored just now
    basis = EventTime(late, event_time="_source_ts", slack=timedelta(0))
    landed = reader.cover(PulsarSource(topic, value=Debezium()), Window(at, at + HOUR), basis=basis)
    assert [row["id"] for row in reader.rows()] == [1]
    assert (landed.receipt.rows, landed.receipt.kinds) == (1, {"tombstone": 1})
