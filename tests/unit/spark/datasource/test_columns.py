"""The columns of a read: a system's own, other connectors' names, and decoded ones."""

from __future__ import annotations

import pyarrow as pa
import pytest

from airflow_provider_streams import PulsarSource
from airflow_provider_streams.errors import InvalidRequest
from airflow_provider_streams.formats.decoder import Decoded
from airflow_provider_streams.model.schema.ddl import parse_columns
from airflow_provider_streams.model.schema.decoding import Decoding
from airflow_provider_streams.model.schema.types import Simple
from airflow_provider_streams.operators.read import ReadWindowOperator
from airflow_provider_streams.spark.datasource.columns import Columns
from airflow_provider_streams.systems.pulsar.system import PulsarSystem

PULSAR = PulsarSystem.from_options({"service_url": "pulsar://127.0.0.1:1", "admin_url": "http://127.0.0.1:1"})
RECORDS = Decoding(parse_columns("id long, topic string"))
KEYED = Decoding(Simple("string"), Simple("int"))


def names(decoding, asked=None):
    return Columns.of(PULSAR, decoding, asked).schema.names


def test_without_decoding_the_layout_is_the_systems():
    default = ["value", "key", "publish_time", "event_time", "topic", "partition", "ledger", "entry", "batch_index"]
    assert names(None) == default
    assert Columns.of(PULSAR, None, None).schema == PULSAR.schema(None)


def test_fields_come_first_and_metadata_have_an_underscore():
    metadata = [
        "_key",
        "_publish_time",
        "_event_time",
        "_topic",
        "_partition_index",
        "_ledger",
        "_entry",
        "_batch_index",
    ]
    assert names(RECORDS) == ["id", "topic", *metadata]
    assert names(KEYED) == ["value", *metadata]
    types = dict(zip(names(KEYED), Columns.of(PULSAR, KEYED, None).schema.types, strict=True))
    assert (types["value"], types["_key"]) == (pa.string(), pa.int32())


def test_names_of_other_connectors_are_taken():
    asked = ["__messageId", "__publishTime", "__key"]
    for decoding in (None, RECORDS):
        columns = Columns.of(PULSAR, decoding, asked)
        assert columns.schema.names == asked
        assert columns.stored == ("message_id", "publish_time", "key_bytes")
    assert Columns.of(PULSAR, None, ["__key"]).schema.field(0).type == pa.binary()


@pytest.mark.parametrize(
    ("decoding", "asked", "hint"),
    [
        (None, ["_topic"], "did you mean 'topic'"),
        (RECORDS, ["publish_time"], "did you mean '_publish_time'"),
        (RECORDS, ["ID"], "no column 'ID'"),
        (RECORDS, [], "at least one"),
        (RECORDS, ["id", "id"], "named once each"),
        (KEYED, ["id"], "no column 'id'"),
    ],
)
def test_unknown_columns_are_refused_with_the_nearest(decoding, asked, hint):
    with pytest.raises(InvalidRequest, match=hint):
        Columns.of(PULSAR, decoding, asked)


@pytest.mark.parametrize(
    ("field", "hidden"), [("_topic", "_topic"), ("_Publish_Time", "_publish_time"), ("_KEY", "_key")]
)
@pytest.mark.parametrize("asked", [None, ["id"]])
def test_a_field_that_a_metadata_column_hides_is_refused(field, hidden, asked):
    with pytest.raises(InvalidRequest, match=f"field '{field}', .* column [(]{hidden};"):
        Columns.of(PULSAR, Decoding(parse_columns(f"id long, {field} string")), asked)


def test_fields_that_differ_by_case_only_are_refused():
    with pytest.raises(InvalidRequest, match="two fields of this name"):
        Columns.of(PULSAR, Decoding(parse_columns("id long, ID string")), None)


def test_rows_are_put_together_of_both():
    columns = Columns.of(PULSAR, RECORDS, ["_topic", "topic", "id", "__topic", "_value"])
    stored = pa.record_batch({"value": pa.array([b"1", None]), "topic": ["here", "there"]})
    # a tombstone's fields are null, whatever values they point to
    value = pa.StructArray.from_arrays([[1, 2], ["a", "b"]], ["id", "topic"], mask=pa.array([False, True]))
    decoded = Decoded(value, None, pa.nulls(2, pa.dictionary(pa.int32(), pa.string())), pa.nulls(2, pa.string()))
    assert columns.rows(stored, decoded).to_pylist() == [
        {"_topic": "here", "topic": "a", "id": 1, "__topic": "here", "_value": b"1"},
        {"_topic": "there", "topic": None, "id": None, "__topic": "there", "_value": None},
    ]


@pytest.mark.parametrize(
    ("source", "columns"),
    [
        (PulsarSource("a"), ["_topic"]),
        (PulsarSource("a"), ["id"]),
        (PulsarSource("a", value="auto"), ["_topics"]),
        (PulsarSource("a", value="auto"), ["id", "id"]),
    ],
)
def test_columns_that_can_never_be_are_refused_when_the_dag_is_parsed(source, columns):
    with pytest.raises(InvalidRequest):
        ReadWindowOperator(task_id="read", source=source, sink=None, columns=columns)


@pytest.mark.parametrize(
    ("source", "columns"),
    [
        (PulsarSource("a"), ["topic", "__key"]),
        (PulsarSource("a", value="auto"), ["id", "_topic", "__messageId"]),
    ],
)
def test_columns_that_may_be_are_taken(source, columns):
    ReadWindowOperator(task_id="read", source=source, sink=None, columns=columns)
