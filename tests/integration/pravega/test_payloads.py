"""Events of a real stream as columns, by a payload that the source declares: others' libraries wrote them."""

from __future__ import annotations

import io
from typing import Any

import fastavro
import pytest
from google.protobuf import descriptor_pb2, message_factory
from google.protobuf.descriptor_pool import DescriptorPool

from airflow_provider_streams.model.schema.payload import Avro, Payload, Protobuf, Utf8
from airflow_provider_streams.spark.datasource.read_options import SplitReadOptions
from airflow_provider_streams.spark.datasource.split_reading import open_split
from airflow_provider_streams.systems.pravega.source import PravegaSource
from airflow_provider_streams.testing.pravega_writer import PravegaWriter

pytestmark = pytest.mark.pravega

ORDERS: list[dict[str, Any]] = [{"id": -(2**63), "customer": "Zoë"}, {"id": 7, "customer": ""}]
SCHEMA = {
    "type": "record",
    "name": "Order",
    "fields": [{"name": "id", "type": "long"}, {"name": "customer", "type": "string"}],
}


def avro() -> tuple[Payload, list[bytes]]:
    def encoded(order: dict[str, Any]) -> bytes:
        fastavro.schemaless_writer(out := io.BytesIO(), fastavro.parse_schema(SCHEMA), order)
        return out.getvalue()

    return Avro(SCHEMA), [encoded(order) for order in ORDERS]


def protobuf() -> tuple[Payload, list[bytes]]:
    kind = descriptor_pb2.FieldDescriptorProto
    file = descriptor_pb2.FileDescriptorProto(name="shop.proto", package="shop", syntax="proto3")
    order = file.message_type.add(name="Order")
    order.field.add(name="id", number=2, type=kind.TYPE_SINT64, label=kind.LABEL_OPTIONAL)
    order.field.add(name="customer", number=1, type=kind.TYPE_STRING, label=kind.LABEL_OPTIONAL)
    pool = DescriptorPool()
    pool.Add(file)
    made = message_factory.GetMessageClass(pool.FindMessageTypeByName("shop.Order"))
    events = [made(**order).SerializeToString() for order in ORDERS]
    return Protobuf(descriptor_pb2.FileDescriptorSet(file=[file]).SerializeToString(), "shop.Order"), events


@pytest.mark.parametrize("written", [avro, protobuf])
def test_records_are_the_columns_of_their_fields(lab, stream, written):
    payload, events = written()
    check(lab, stream, payload, events, ORDERS)


def test_texts_are_one_column(lab, stream):
    texts = ["Zoë", "", "🦊\0"]
    check(lab, stream, Utf8(), [text.encode() for text in texts], [{"value": text} for text in texts])


def check(lab: Any, stream: str, payload: Payload, events: list[bytes], expected: list[dict[str, Any]]) -> None:
    """A plan of the whole stream decodes what was written."""
    with PravegaWriter(lab.system.endpoint, stream) as writer:
        writer.write(("k", event) for event in events)
    plan = lab.plan(stream, lab.head(stream), lab.tail(stream), source=PravegaSource(stream, value=payload))
    readers = [open_split(lab.system, plan, split, SplitReadOptions(tuple(expected[0]))) for split in plan.splits]
    assert [row for reader in readers for batch in reader for row in batch.to_pylist()] == expected
