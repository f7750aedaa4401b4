"""How fast payloads become columns, with nothing before or after, against the plain way of its library and Spark's.

CPU seconds of one core, so that other work on the machine counts little; the best of several rounds, ours and the
library's in turn. All read the same records of seven fields (37 bytes as Avro, 122 as JSON), in batches of 10,000. The
library's way is what its documentation shows: each payload to Python's values, those to a table of the same columns.
"""

from __future__ import annotations

import base64
import io
import json
import random
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import fastavro
import pyarrow as pa
from google.protobuf import descriptor_pb2, message_factory
from google.protobuf.descriptor_pool import DescriptorPool

from airflow_provider_streams.formats.arrow.arrow_types import arrow_type
from airflow_provider_streams.formats.decoder import Decoder, Payloads
from airflow_provider_streams.formats.schema.pinned_schemas import decoding_of
from airflow_provider_streams.model.schema.payload import Avro, Json, Payload, Protobuf, Utf8
from tests.bench.spark_functions import session

EVENTS = 100_000
BATCH = 10_000
ROUNDS = 5
COLUMNS = "id long, customer string, cents long, ts long, ok boolean, price double, note string"

SCHEMA = {
    "type": "record",
    "name": "Order",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "customer", "type": "string"},
        {"name": "cents", "type": "long"},
        {"name": "ts", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "ok", "type": "boolean"},
        {"name": "price", "type": "double"},
        {"name": "note", "type": ["null", "string"]},
    ],
}
NESTED = {
    "type": "record",
    "name": "Basket",
    "fields": [
        {"name": "order", "type": SCHEMA},
        {"name": "tags", "type": {"type": "array", "items": "string"}},
        {"name": "counts", "type": {"type": "map", "values": "long"}},
    ],
}


@dataclass(frozen=True)
class Case:
    """Payloads of one format, how we read them, and how its library does."""

    name: str
    payload: Payload
    payloads: list[bytes]
    theirs: Callable[[list[bytes]], Any] | None
    """Payloads to a table, as its documentation shows it."""
    spark: Callable[[Any], Any] | None = None
    """A column of payloads to one of structs, by Spark's own function."""


def run(scale: float = 1.0) -> None:
    """Print records of each format in a CPU second, ours and theirs."""
    print("\npayloads to columns, one core")
    print(f"  {'':<34}{'records/s':>12}{'MB/s':>8}{'library/s':>12}{'ratio':>8}{'Spark/s':>12}{'ratio':>8}")
    with session() as spark_rate:
        for case in cases(int(EVENTS * scale)):
            ours, theirs = _rates(case)
            size = sum(map(len, case.payloads)) / len(case.payloads)
            sparks = spark_rate(case.payloads, case.spark) if case.spark else 0
            others = "".join(f"{rate:>12,.0f}{ours / rate:>8.1f}" if rate else " " * 20 for rate in (theirs, sparks))
            print(f"  {case.name:<34}{ours:>12,.0f}{ours * size / 1e6:>8.0f}{others}".rstrip(), flush=True)


def cases(count: int) -> Iterator[Case]:
    """Each format; and what makes it slow."""
    records = list(_records(count))
    flat = _avro(SCHEMA, records)
    yield Case("Avro, flat", Avro(SCHEMA), flat, lambda data: _fastavro(SCHEMA, data), _from_avro(SCHEMA))
    bad = [one if number % 100 else one[:-3] for number, one in enumerate(flat)]
    yield Case("Avro, flat, 1 % bad", Avro(SCHEMA), bad, None)
    baskets = [{"order": one, "tags": ["a", "bc"][: one["id"] % 3], "counts": {"x": one["id"]}} for one in records]
    yield Case(
        "Avro, records, arrays and maps",
        Avro(NESTED),
        _avro(NESTED, baskets),
        lambda data: _fastavro(NESTED, data),
        _from_avro(NESTED),
    )
    texts = [json.dumps(one, separators=(",", ":")).encode() for one in records]
    yield Case("JSON, flat", Json(COLUMNS), texts, lambda data: _json_loads(COLUMNS, data), _from_json(COLUMNS))
    some = [one if number % 1000 else one[:-3] for number, one in enumerate(texts)]
    yield Case("JSON, flat, 0.1 % bad", Json(COLUMNS), some, None)
    each = [one.replace(b'"ok"', b'"tags":{"a":1},"ok"') for one in texts]
    mapped = f"{COLUMNS}, tags map<string,int>"
    yield Case(
        "JSON, with a map: row by row", Json(mapped), each, lambda data: _json_loads(mapped, data), _from_json(mapped)
    )
    yield Case(
        "  to json.loads, columns inferred",
        Json(mapped),
        each,
        lambda data: pa.Table.from_pylist([json.loads(one) for one in data]),
    )
    message, descriptor_set = _order()
    messages = [message(**one).SerializeToString() for one in records]
    yield Case(
        "Protobuf, flat",
        Protobuf(descriptor_set, "bench.Order"),
        messages,
        lambda data: pa.Table.from_pylist([_as_dict(message.FromString(one)) for one in data]),
        _from_protobuf(base64.b64decode(descriptor_set)),
    )
    yield Case(
        "UTF-8", Utf8(), texts, lambda data: pa.array([one.decode() for one in data]), lambda data: data.cast("string")
    )


def _records(count: int) -> Iterator[dict[str, Any]]:
    dice = random.Random(1)
    for number in range(count):
        yield {
            "id": number,
            "customer": f"cust-{number % 5000:05}",
            "cents": dice.randint(1, 10**6),
            "ts": 1_700_000_000_000 + number,
            "ok": bool(number % 2),
            "price": dice.random(),
            "note": None if number % 3 else "hello world",
        }


def _avro(schema: Any, records: list[Any]) -> list[bytes]:
    parsed, rows = fastavro.parse_schema(schema), []
    for one in records:
        out = io.BytesIO()
        fastavro.schemaless_writer(out, parsed, one)
        rows.append(out.getvalue())
    return rows


def _fastavro(schema: Any, data: list[bytes]) -> pa.Table:
    parsed = fastavro.parse_schema(schema)
    rows = [fastavro.schemaless_reader(io.BytesIO(one), parsed, None) for one in data]
    type_ = arrow_type(decoding_of(Avro(schema), None, {}).value)
    return pa.Table.from_pylist(rows, schema=pa.schema(list(type_)))  # type: ignore[arg-type]


def _json_loads(columns: str, data: list[bytes]) -> pa.Table:
    """A map must be pairs, for Arrow."""
    type_ = arrow_type(decoding_of(Json(columns), None, {}).value)
    rows = [json.loads(one) for one in data]
    if "map<" in columns:
        for row in rows:
            row["tags"] = list(row["tags"].items())
    return pa.Table.from_pylist(rows, schema=pa.schema(list(type_)))  # type: ignore[arg-type]


def _from_avro(schema: Any) -> Callable[[Any], Any]:
    from pyspark.sql.avro.functions import from_avro  # only here

    return lambda data: from_avro(data, json.dumps(schema))


def _from_json(columns: str) -> Callable[[Any], Any]:
    from pyspark.sql.functions import from_json  # only here

    return lambda data: from_json(data.cast("string"), columns)


def _from_protobuf(descriptor_set: bytes) -> Callable[[Any], Any]:
    from pyspark.sql.protobuf.functions import from_protobuf  # only here

    return lambda data: from_protobuf(data, "bench.Order", binaryDescriptorSet=descriptor_set)


def _order() -> tuple[Any, str]:
    kind = descriptor_pb2.FieldDescriptorProto
    file = descriptor_pb2.FileDescriptorProto(name="bench.proto", package="bench", syntax="proto3")
    message = file.message_type.add(name="Order")
    types = {
        "id": "INT64",
        "customer": "STRING",
        "cents": "INT64",
        "ts": "INT64",
        "ok": "BOOL",
        "price": "DOUBLE",
        "note": "STRING",
    }
    for number, (name, type_) in enumerate(types.items(), 1):
        message.field.add(name=name, number=number, type=getattr(kind, f"TYPE_{type_}"), label=kind.LABEL_OPTIONAL)
    pool = DescriptorPool()
    pool.AddSerializedFile(file.SerializeToString())
    files = descriptor_pb2.FileDescriptorSet(file=[file])
    found = message_factory.GetMessageClass(pool.FindMessageTypeByName("bench.Order"))
    return found, base64.b64encode(files.SerializeToString()).decode()


def _as_dict(message: Any) -> dict[str, Any]:
    return {field.name: getattr(message, field.name) for field in message.DESCRIPTOR.fields}


def _reading(case: Case) -> Callable[[], Any]:
    decoder = Decoder(decoding_of(case.payload, None, {}), "bench")
    values = pa.array(case.payloads, pa.binary())

    def read() -> None:
        for start in range(0, len(values), BATCH):
            decoder.decode(Payloads(values.slice(start, BATCH)))

    return read


def _rates(case: Case) -> tuple[float, float]:
    """Ours and the library's, records in a CPU second; 0: there is no library's way."""
    ours, best, theirs_best = _reading(case), float("inf"), float("inf")
    for _ in range(ROUNDS):
        best = min(best, _seconds(ours))
        if case.theirs:
            theirs_best = min(theirs_best, _seconds(lambda: _in_batches(case)))
    return len(case.payloads) / best, len(case.payloads) / theirs_best


def _in_batches(case: Case) -> None:
    for start in range(0, len(case.payloads), BATCH):
        if case.theirs:
            case.theirs(case.payloads[start : start + BATCH])


def _seconds(work: Callable[[], Any]) -> float:
    began = time.process_time()
    work()
    return time.process_time() - began


if __name__ == "__main__":
    run()
