"""Every type of Pulsar's schemas, written by Java's client and by pulsar-client, as our reader and decoder give it."""

from __future__ import annotations

import datetime as dt
import decimal
import io
import json
import math
import secrets
import struct
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import fastavro
import pytest

from airflow_provider_streams.errors import IncompatibleSchemas, InvalidSchema, MultipleRecordTypes
from airflow_provider_streams.formats.decoder import Decoder
from airflow_provider_streams.model.plan.plan import Plan, PlanRequest
from airflow_provider_streams.model.schema.decode_errors import DecodeErrorPolicy
from airflow_provider_streams.model.schema.decoding import ANY_VERSION
from airflow_provider_streams.model.schema.payload import Auto, Json, Utf8
from airflow_provider_streams.model.window.window import Window
from airflow_provider_streams.spark.datasource.read_options import SplitReadOptions
from airflow_provider_streams.spark.datasource.split_reading import open_split, payloads_of
from airflow_provider_streams.systems.pulsar.client.admin.client import AdminClient
from airflow_provider_streams.systems.pulsar.client.admin.requests import compatibility
from airflow_provider_streams.systems.pulsar.client.endpoint import Endpoint
from airflow_provider_streams.systems.pulsar.source import PulsarSource
from airflow_provider_streams.systems.pulsar.system import PulsarSystem
from airflow_provider_streams.systems.registry import declaration_of
from airflow_provider_streams.windows.plan.payload_decoding import decoding_now
from stream_servers.java import run_java
from tests.integration.pulsar.raw_producer import RawProducer, metadata

pytestmark = pytest.mark.pulsar

JAVA = Path(__file__).parent / "Schemas.java"
NOW = dt.datetime(2026, 11, 20, tzinfo=dt.UTC)
COLUMNS = declaration_of("pulsar").payload_columns

LINES = [{"count": 1, "item": "one"}, {"count": 2, "item": "two"}]
PLAIN = {
    "paid": True,
    "number": -(2**31),
    "cents": 2**63 - 1,
    "weight": 1.5,
    "rate": -2.25,
    "customer": "Zoë",
    "raw": b"\x00\xffA",
    "color": "GREEN",
    "tags": ["a", "", "ß"],
    "counts": [("x", 1)],
    "first": {"count": 1, "item": "first"},
    "lines": LINES,
    "maybe": 7,
}
UNSET = {
    **dict.fromkeys(PLAIN),
    "paid": False,
    "number": 0,
    "cents": 0,
    "weight": 0.0,
    "rate": 0.0,
}
ORDER = {
    **PLAIN,
    "price": decimal.Decimal("-123456789012345678.90"),
    "at": dt.datetime.fromtimestamp(1_700_000_000.123, dt.UTC),
    "day": dt.date(2024, 2, 29),
    "hour": dt.time(23, 59, 59, 999_000),
}
FIELD = {
    "kind": "TYPE_STRING",
    "cardinality": "CARDINALITY_REPEATED",
    "number": 2**31 - 1,
    "name": "Zoë",
    "type_url": "",
    "oneof_index": -1,
    "packed": True,
    "options": [{"name": "o", "value": {"type_url": "t", "value": b"\x00\xff"}}],
    "json_name": "",
    "default_value": "",
}
NO_FIELD = {
    **dict.fromkeys(FIELD, ""),
    "kind": "TYPE_UNKNOWN",
    "cardinality": "CARDINALITY_UNKNOWN",
    "number": 0,
    "oneof_index": 0,
    "packed": False,
    "options": [],
}


def moment(text: str) -> dt.datetime:
    return dt.datetime.fromisoformat(text)


BY_JACKSON = {
    "isOpen": True,
    "at": moment("2023-11-14T22:13:20.123456Z"),
    "day": dt.date(2024, 2, 29),
    "hour": dt.time(23, 59, 59, 1),
    "wall": moment("2024-02-29T12:30:00"),
    "old": moment("2023-11-14T22:13:20.123Z"),
    "price": "12.50",
    "prices": [(7, "1.50")],
    "letter": "ß",
    "self": None,
}
SCALARS = {
    "bytes": [b"\x00\xff", b""],
    "bytebuffer": [b"\x01\x02"],
    "string": ["", "Zoë", "\0\U0001f600"],
    "bool": [True, False],
    "int8": [-(2**7), 0, 2**7 - 1],
    "int16": [-(2**15), 0, 2**15 - 1],
    "int32": [-(2**31), 0, 2**31 - 1],
    "int64": [-(2**63), 0, 2**63 - 1],
    "float": [2.0**-149, -0.0, (2 - 2.0**-23) * 2.0**127, -math.inf, math.nan],
    "double": [5e-324, -0.0, 1.7976931348623157e308, -math.inf, math.nan],
    "date": [moment("2023-11-14T22:13:20.123Z"), moment("1969-12-31T23:59:59.999Z")],
    "time": [moment("1970-01-01T23:59:59.999Z"), moment("1970-01-01T00:00:00Z")],
    "timestamp": [moment("2023-11-14T22:13:20.123Z"), moment("1969-12-31T23:59:59.999Z")],
    "instant": [moment("2023-11-14T22:13:20.123456Z"), moment("1969-12-31T23:59:59Z")],
    "localdate": [dt.date(2024, 2, 29), dt.date(1, 1, 1), dt.date(9999, 12, 31)],
    "localtime": [0, 86_399_999_999_999],
    "localdatetime": [moment("2024-02-29T12:30:01.123456"), moment("1969-12-31T23:59:59")],
}
"""What `Schemas.java` writes; nanoseconds that a column cannot hold are cut off."""
RECORDS = {
    "avro": [ORDER],
    "json": [PLAIN, UNSET],
    "json-java": [BY_JACKSON],
    "json-int": [7],
    "json-enums": [["RED", "GREEN"]],
    "protobuf": [{"seconds": -5, "nanos": 7}],
    "protobuf-native": [FIELD, NO_FIELD],
}
PAIRS = {
    "kv-string-int32": ("key", 5),
    "kv-avro-json": ({"city": "Köln", "zip": 1}, {"city": "Bonn", "zip": 2}),
    "kv-bytes-bytes": (b"\x00\xff", b""),
}
KINDS = ("inline", "separated")
CASES = [
    *SCALARS,
    *RECORDS,
    "protobuf-nested",
    "versions",
    "turns",
    *(f"{name}-{kind}" for name in PAIRS for kind in KINDS),
]


class Row(NamedTuple):
    value: Any
    key: Any
    cause: str | None
    version: str | None


class Topics:
    """What was written, and how it is read."""

    def __init__(self, server: Any, namespace: str) -> None:
        self.server, self.namespace = server, namespace
        self.endpoint = Endpoint(server.service_url, server.admin_url)
        self.system = PulsarSystem(self.endpoint)

    def name(self, case: str) -> str:
        return f"{self.namespace}/{case}"

    def make(self, case: str) -> str:
        return self.server.create_topic(self.name(case))

    def plan(self, topics: str | Sequence[str], **payloads: Any) -> Plan:
        names = [topics] if isinstance(topics, str) else topics
        source = PulsarSource([self.name(name) for name in names], **payloads)
        window = Window(NOW, NOW + dt.timedelta(hours=1))
        made = self.system.plan(PlanRequest(source, window, "tests", basis="chained"))
        assert Plan.from_json(made.to_json()) == made
        return made

    def rows(self, topics: str | Sequence[str], **payloads: Any) -> list[Row]:
        plan = self.plan(topics, **(payloads or {"value": "auto"}))
        found = []
        for split in plan.splits:
            decoder = Decoder(plan.decoding, declaration_of("pulsar").dataset(plan.source.names, split.shard))
            columns = [COLUMNS.value, COLUMNS.key, COLUMNS.version, *COLUMNS.times]
            for batch in self.system.read(plan, split, columns):
                decoded = decoder.decode(payloads_of(batch, COLUMNS))
                told = decoded._replace(versions=decoded.versions.cast("string"))
                found += map(Row, *(listed(column) for column in told))
        return found

    def schemas(self, case: str) -> Any:
        return self.system.schemas(PulsarSource(self.name(case)))[self.name(case)]


def listed(column: Any) -> list[Any]:
    if str(column.type) == "time64[ns]":  # nanoseconds are none of Python's
        return column.cast("int64").to_pylist()
    return column.to_pylist()


@pytest.fixture(scope="module")
def topics(pulsar_server: Any) -> Any:
    found = Topics(pulsar_server, f"public/schemas-{secrets.token_hex(4)}")
    pulsar_server.create_namespace(found.namespace)
    pulsar_server.admin("PUT", f"namespaces/{found.namespace}/schemaCompatibilityStrategy", "ALWAYS_COMPATIBLE")
    arguments = [word for case in CASES for word in (case, found.make(case))]
    run_java(JAVA, [pulsar_server.service_url, *arguments], pulsar_server.classpath)
    yield found
    pulsar_server.delete_namespace(found.namespace)


@pytest.mark.parametrize(("case", "values"), [*SCALARS.items(), *RECORDS.items()])
def test_what_java_writes_is_what_rows_hold(topics, case, values):
    rows = topics.rows(case)
    assert [row.cause for row in rows] == [None] * len(rows)
    # then a tombstone, and one that is no batch
    assert same([row.value for row in rows], [*values, None, values[0]])
    assert [row.key for row in rows[-3:]] == [None, b"gone", b"k"]
    versions = {row.version for row in rows}
    assert versions == ({None} if case in {"bytes", "bytebuffer"} else {"0"})


def same(found: list[Any], wanted: list[Any]) -> bool:
    """Equal, with the signs of zeros, and NaN where NaN is."""
    if isinstance(wanted[0], float):
        return repr(found) == repr(wanted)
    return found == wanted


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("case", "pair"), PAIRS.items())
def test_keys_and_values_are_decoded_each_by_its_own_schema(topics, case, pair, kind):
    key, value = pair
    rows = topics.rows(f"{case}-{kind}")
    written = [(key, value), (key, None), (None, value), (None, None)]
    if kind == "inline":
        written.append((None, None))  # a tombstone; its message's key is none of the schema's
    assert [(row.key, row.value) for row in rows] == written * 2
    assert {row.cause for row in rows} == {None}


def test_ten_versions_and_a_producer_that_does_not_fit(topics):
    rows = topics.rows("versions")
    good = [row for row in rows if row.cause is None and row.value is not None]
    assert [row.value["id"] for row in good] == [10 * number + row for number in range(10) for row in range(3)] + [1000]
    for row in good[:-1]:
        number = row.value["id"] // 10
        wanted = {f"f{i}": f"v{number}.{i}" if i <= number and i % 2 else None for i in range(1, 10)}
        assert row.value == {"id": row.value["id"], **wanted}
    assert [int(row.version) for row in good[::3]] == [0, 1, 2, 3, 4, 6, 7, 8, 9, 10, 10]
    (bad,) = [row for row in rows if row.cause]
    assert bad.version == "5"
    assert bad.value is None
    assert "version 5 does not fit the plan's columns: id is long and string" in bad.cause
    assert "not a number" not in bad.cause
    assert sum(row.value is None for row in rows) == 21
    assert [version.version for version in topics.schemas("versions")] == [str(number) for number in range(11)]


def test_a_decoding_is_resolved_anew_without_planning_the_window(topics):
    """As a replay of quarantined events does, whose window the stream may no longer hold."""
    plan = topics.plan("versions", value="auto")
    source = PulsarSource(topics.name("versions"), value="auto")
    assert decoding_now(topics.system, source, plan) == plan.decoding
    assert decoding_now(topics.system, PulsarSource(topics.name("versions")), plan) is None


def test_each_message_of_a_batch_has_its_own_version(topics):
    rows = topics.rows("turns")
    assert [(row.value["id"], row.version, row.cause) for row in rows] == [
        (number, "1" if number % 3 == 2 else "0", None) for number in range(6)
    ]


def test_what_protobuf_does_not_tell_is_asked_for(topics):
    with pytest.raises(InvalidSchema, match=r"'options' holds.*Give the descriptor"):
        topics.plan("protobuf-nested", value="auto")
    (stored,) = topics.schemas("protobuf-nested")
    assert (stored.kind, stored.writer) == ("PROTOBUF", None)


def test_topics_become_one_row_type_or_are_refused(topics):
    both = topics.plan(["int8", "int64"], value="auto").decoding
    assert str(both.value) == "long"
    assert {row.value for row in topics.rows(["int8", "int64"])} >= {-(2**7), -(2**63)}
    with pytest.raises(IncompatibleSchemas, match=r"has no schema, .*/string has"):
        topics.plan(["bytes", "string"], value="auto")
    with pytest.raises(IncompatibleSchemas, match="string and boolean"):
        topics.plan(["string", "bool"], value="auto")


def test_a_schema_that_the_user_gives_wins(topics):
    rows = topics.rows("json", value=Json("number int, customer string, first struct<item: string>"), key=Utf8())
    assert rows[0].value == {"number": -(2**31), "customer": "Zoë", "first": {"item": "first"}}
    assert [row.key for row in rows] == [None, None, "gone", "k"]
    decoding = topics.plan("json", value=Json("number int"), key=Utf8()).decoding
    assert decoding.framing == ""
    assert [list(versions) for versions in decoding.schemas.values()] == [[ANY_VERSION]]
    assert topics.plan("json").decoding is None


def test_the_fingerprint_covers_the_schemas(topics):
    prints = {topics.plan("json", **payloads).fingerprint for payloads in ({}, {"value": "auto"}, {"key": Utf8()})}
    assert len(prints) == 3


def test_pulsar_client_writes_the_same(topics, pulsar_peer):
    from pulsar import schema as of

    class Inner(of.Record):
        x = of.Integer()

    class Wide(of.Record):
        a = of.Integer()
        c = of.String()
        d = of.Boolean()
        f = of.Double()
        h = of.Array(of.String())
        i = of.Map(of.Integer())
        j = Inner()

    row = Wide(a=1, c="Zoë", d=True, f=2.5, h=["a"], i={"x": 1}, j=Inner(x=1))
    wanted = {"a": 1, "c": "Zoë", "d": True, "f": 2.5, "h": ["a"], "i": [("x", 1)], "j": {"x": 1}}
    for name, schema, value, expected in (
        ("py-json", of.JsonSchema(Wide), row, wanted),
        ("py-avro", of.AvroSchema(Wide), row, wanted),
        ("py-string", of.StringSchema(), "Zoë", "Zoë"),
    ):
        producer = pulsar_peer.create_producer(topics.make(name), schema=schema)
        producer.send(value, partition_key="k")
        producer.close()
        assert topics.rows(name, value="auto", key=Utf8()) == [Row(expected, "k", None, "0")]


def write_types(topics, client, case, kind):
    """Two versions of one record, and another record between them: brokers never compare their names."""
    topic = topics.make(case)
    id_, note = {"name": "id", "type": "long"}, {"name": "note", "type": "string", "default": "none"}
    iban = {"name": "iban", "type": "string", "default": "DE0"}
    for name, fields, value in (
        ("Order", [id_], {"id": 1}),
        ("Payment", [id_, iban], {"id": 2, "iban": "DE1"}),
        ("Order", [id_, note], {"id": 3, "note": "now"}),
    ):
        text = json.dumps({"type": "record", "name": name, "namespace": "t", "fields": fields})
        body = json.dumps(value).encode() if kind == "JSON" else avro_body(text, value)
        producer = client.create_producer(topic, schema=described(kind, text))
        producer.send(body)
        producer.close()


def avro_body(schema, value):
    out = io.BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(json.loads(schema)), value)
    return out.getvalue()


def described(kind, text):
    """A schema to register with the broker, for bytes that are encoded already."""
    import _pulsar
    from pulsar import schema as of

    plain = of.BytesSchema()
    plain._schema_info = _pulsar.SchemaInfo(getattr(_pulsar.SchemaType, kind), kind, text)
    return plain


@pytest.mark.parametrize("kind", ["AVRO", "JSON"])
def test_several_record_types_of_a_topic_are_refused_or_read_as_the_source_says(topics, pulsar_peer, kind):
    case = f"types-{kind.lower()}"
    write_types(topics, pulsar_peer, case, kind)
    with pytest.raises(MultipleRecordTypes, match=rf"{topics.name(case)}: .* 2 record types: t\.Order, t\.Payment\."):
        topics.plan(case, value="auto")
    one = topics.rows(case, value=Auto(type="Order"))
    assert [(row.value, row.cause) for row in one] == [
        ({"id": 1, "note": "none"}, None),
        (None, "other type"),
        ({"id": 3, "note": "now"}, None),
    ]
    every = topics.rows(case, value=Auto(types="all"))
    assert [row.value for row in every] == [
        {"id": 1, "note": "none", "iban": None, "_type": "t.Order"},
        {"id": 2, "note": None, "iban": "DE1", "_type": "t.Payment"},
        {"id": 3, "note": "now", "iban": None, "_type": "t.Order"},
    ]
    as_one = topics.rows(case, value=Auto(type=("t.Order", "t.Payment")))
    assert [row.value["id"] for row in as_one] == [1, 2, 3]


def test_what_a_schema_does_not_say_is_bad_by_name(topics, pulsar_peer):
    from pulsar import schema as of

    topic = topics.make("careless")
    producer = pulsar_peer.create_producer(topic, schema=of.StringSchema())
    producer.send("deleted")
    producer.close()
    topics.server.admin("DELETE", f"schemas/{topics.name('careless')}/schema")
    for schema, value in ((of.StringSchema(), "again"), (of.BytesSchema(), b"bytes")):
        producer = pulsar_peer.create_producer(topic, schema=schema)
        producer.send(value)
        producer.close()
    deleted, again, of_none = topics.rows("careless")
    assert again == Row("again", None, None, "2")
    assert (deleted.value, deleted.version) == (None, "0")
    assert "version 0" in deleted.cause
    assert (of_none.value, of_none.version) == (None, None)
    assert of_none.cause


def register(topics: Topics, case: str, *fields: str) -> int:
    """A record of integers becomes the topic's schema; its version."""
    schema = {"type": "record", "name": "O", "fields": [{"name": name, "type": "int"} for name in fields]}
    body = {"type": "AVRO", "schema": json.dumps(schema), "properties": {}}
    return topics.server.admin("POST", f"schemas/{topics.name(case)}/schema", body)["version"]["version"]


def unregister(topics: Topics, case: str) -> None:
    """All versions are deleted: the next one is number 0."""
    topics.server.admin("DELETE", f"schemas/{topics.name(case)}/schema?force=true")


def of_version_0(published: float, **more: bytes) -> bytes:
    return metadata(int(published * 1000), schema_version=struct.pack(">q", 0), **more)


def test_a_version_with_the_number_of_a_deleted_one_decodes_none_of_its_messages(topics):
    topic = topics.make("reborn")
    assert register(topics, "reborn", "a", "b") == 0
    with RawProducer(topics.endpoint, topic) as producer:
        producer.send(of_version_0(time.time() - 600), b"\2\4")
        unregister(topics, "reborn")
        assert register(topics, "reborn", "b", "a") == 0
        producer.send(of_version_0(time.time() - 50), b"\6\x08")  # by a clock that lags
        producer.send(of_version_0(time.time() - 600, replicated_from=b"east"), b"\6\x08")
    deleted, *rest = topics.rows("reborn")
    assert (deleted.value, deleted.version) == (None, "0")
    assert "version 0 was registered after it was written" in deleted.cause
    assert rest == [Row({"b": 3, "a": 4}, None, None, "0")] * 2
    plan = topics.plan("reborn", value="auto")
    dropping = open_split(
        topics.system, plan, plan.splits[0], SplitReadOptions(("a",), undecodable=DecodeErrorPolicy("drop"))
    )
    assert [row for batch in dropping for row in batch.to_pylist()] == [{"a": 4}] * 2
    assert dropping.receipt.dropped == 1


def test_messages_of_a_deleted_schema_are_not_the_bytes_of_a_topic_without_one(topics, pulsar_peer):
    from pulsar import schema as of

    topic = topics.make("bare")
    producer = pulsar_peer.create_producer(topic, schema=of.StringSchema())
    producer.send("deleted")
    producer.close()
    unregister(topics, "bare")
    for schema in ({"schema": of.BytesSchema()}, {}):
        producer = pulsar_peer.create_producer(topic, **schema)
        producer.send(b"bytes")
        producer.close()
    deleted, *rest = topics.rows("bare")
    assert deleted == Row(None, None, "it names schema version 0, and the topic has no schema (any more)", "0")
    assert rest == [Row(b"bytes", None, None, None)] * 2
    assert [row.value for row in topics.rows("bare", value="utf8")] == ["deleted", "bytes", "bytes"]


def test_compatibility_is_the_brokers_word(topics):
    topics.server.admin("PUT", f"namespaces/{topics.namespace}/schemaCompatibilityStrategy", "FULL")
    narrow = '{"type":"record","name":"Order","namespace":"Schemas","fields":[{"name":"cents","type":"string"}]}'
    (stored,) = topics.schemas("avro")
    with AdminClient(topics.endpoint) as admin:
        topic = f"persistent://{topics.name('avro')}"
        assert admin(compatibility(topic, "AVRO", stored.text, {})).compatible
        refused = admin(compatibility(topic, "AVRO", narrow, {}))
        assert not refused.compatible
        assert "Unable to read schema" in refused.reason
        assert not admin(compatibility(topic, "JSON", stored.text, {})).compatible
