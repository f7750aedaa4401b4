"""What is decoded of a batch: its payloads, and when they were written."""

from __future__ import annotations

import datetime as dt

import pyarrow as pa

from airflow_provider_streams.spark.datasource.split_reading import payloads_of
from airflow_provider_streams.systems.registry import declaration_of

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
