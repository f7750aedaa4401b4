"""What is decoded of a batch: its payloads, and when they were written."""

from __future__ import annotations

import datetime as dt
import json
from dataclasses import replace

import pyarrow as pa
import pytest

from airflow_provider_streams.errors import DecodeError
from airflow_provider_streams.formats.schema.pinned_schemas import decoding_of
from airflow_provider_streams.model.schema.payload import Auto
from airflow_provider_streams.spark.datasource.read_options import SplitReadOptions
from airflow_provider_streams.spark.datasource.split_reading import open_split, payloads_of
from airflow_provider_streams.systems.pulsar.metadata.schemas import writer_of
from airflow_provider_streams.systems.registry import declaration_of
from tests.unit.spark.datasource.test_change_reading import PLAN, Prepared

COLUMNS = declaration_of("pulsar").payload_columns
PUBLISHED = [dt.datetime(2026, 11, 20, hour, tzinfo=dt.UTC) for hour in (1, 2, 3)]
STORED = dt.datetime(2026, 11, 20, 9, tzinfo=dt.UTC)
TIMESTAMP = pa.timestamp("us", "UTC")


def written(broker=(None,) * 3, replicated=(None,) * 3):
    values = {"value": pa.array([b"a"] * 3, pa.binary()), "publish_time": pa.array(PUBLISHED, TIMESTAMP)}
    values |= {"broker_time": pa.array(broker, TIMESTAMP), "replicated_from": pa.array(replicated, pa.string())}
    return payloads_of(pa.RecordBatch.from_pydict(values), COLUMNS).written.to_pylist()


def test_the_broker_says_when_events_were_written_else_the_producer():
    first, _, third = PUBLISHED
    assert written() == PUBLISHED
    assert written(broker=(None, STORED, None)) == [first, STORED, third]
    assert written(replicated=(None, "east", None)) == [first, None, third]
    assert written((STORED, STORED, None), ("east", None, "east")) == [STORED, STORED, None]


def test_columns_that_are_not_there_say_nothing():
    batch = pa.RecordBatch.from_pydict({"value": pa.array([b"a"], pa.binary())})
    assert payloads_of(batch, COLUMNS).written is None
    events = pa.RecordBatch.from_pydict({"event": pa.array([b"a"], pa.binary())})
    assert payloads_of(events, declaration_of("pravega").payload_columns).written is None


def test_an_undecodable_event_of_a_json_schema_is_told_with_the_declaration_that_takes_it():
    fields = [{"name": "e", "type": {"type": "enum", "name": "E", "symbols": ["A", "B"]}}]
    schema = writer_of("JSON", json.dumps({"type": "record", "name": "R", "fields": fields}), {})
    name = declaration_of("pulsar").dataset(PLAN.source.names, PLAN.splits[0].shard)
    plan = replace(PLAN, decoding=decoding_of(Auto(), None, {name: {"3": schema}}, "message"))
    columns = {
        "value": pa.array([b'{"e":"A"}', b'{"e":2}'], pa.binary()),
        COLUMNS.version: pa.array([(3).to_bytes(8, "big")] * 2, pa.binary()),
        **{name: pa.array([1, 2], pa.int64()) for name in COLUMNS.position},
    }
    reader = open_split(Prepared("pulsar", columns), plan, plan.splits[0], SplitReadOptions(("e",)))
    with pytest.raises(DecodeError, match=r"by schema version 3: e: is the number .* value=Auto\('e int'\)"):
        list(reader)
