"""A real Schema Registry: what Java's serializers write with it, and its hook, planning and checks."""

from __future__ import annotations

import json
import secrets
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from airflow_provider_streams.errors import (
    InvalidRequest,
    InvalidSchema,
    MultipleRecordTypes,
    SourceNotFound,
    SystemUnavailable,
)
from airflow_provider_streams.formats.decoder import Decoder, Payloads
from airflow_provider_streams.hooks.schema_registry import SchemaRegistryHook
from airflow_provider_streams.model.plan.plan import Plan, PlanRequest
from airflow_provider_streams.model.plan.receipt import compare
from airflow_provider_streams.model.schema.payload import Json, Registry
from airflow_provider_streams.model.window.basis import Chained
from airflow_provider_streams.model.window.window import Window
from airflow_provider_streams.spark.datasource.read_options import SplitReadOptions
from airflow_provider_streams.spark.datasource.split_reading import open_split
from airflow_provider_streams.systems.connection.backoff import Backoff
from airflow_provider_streams.systems.pravega.client.endpoint import Endpoint
from airflow_provider_streams.systems.pravega.schema_registry import requests, schemas
from airflow_provider_streams.systems.pravega.schema_registry.client import AsyncRegistryClient, RegistryClient
from airflow_provider_streams.systems.pravega.schema_registry.endpoint import RegistryEndpoint
from airflow_provider_streams.systems.pravega.schema_registry.requests import GroupName, SchemaInfo
from airflow_provider_streams.systems.pravega.schema_registry.schemas import versions_of
from airflow_provider_streams.systems.pravega.source import PravegaSource
from airflow_provider_streams.systems.pravega.system import PravegaSystem
from airflow_provider_streams.windows.plan.readiness import WindowQuestion, check_planned
from stream_servers.java import run_java

pytestmark = pytest.mark.pravega

JAVA = Path(__file__).parent / "java" / "Serializers.java"
HOUR = Window(datetime(2026, 11, 20, tzinfo=UTC), datetime(2026, 11, 20, 1, tzinfo=UTC))
CODECS = ("none", "gzip", "snappy")
STREAMS = [
    *(f"{name}-{codec}" for name in ("avro", "json", "protobuf") for codec in CODECS),
    "any",
    "empty",
    "types",
    "mixed",
]

LEAST = -(2**31)
AVRO = [{"a": "hello", "b": number, "c": None} for number in (7, LEAST)] + [
    {"a": "hello", "b": number, "c": number} for number in (7, LEAST)
]
JSON = [
    {
        "customer": f"Zoë {number}",
        "count": number,
        "rate": 1.5,
        "paid": True,
        "tags": ["a", "ß"],
        "counts": [("x", 1)],
        "first": {"item": "one"},
    }
    for number in (1, 2)
]
PROTOBUF = [{"type_url": "t", "value": b"\0\xff\0"}, {"type_url": "", "value": b""}]


def avro(*fields: tuple[str, Any]) -> SchemaInfo:
    kinds = [{"name": name, "type": kind} for name, kind in fields]
    text = json.dumps({"type": "record", "name": "U", "namespace": "t", "fields": kinds})
    return SchemaInfo("t.U", "Avro", text.encode())


class Written:
    """A scope of streams that Java's serializers wrote, and the registry's groups."""

    def __init__(self, pravega: Any, registry: Any, scope: str) -> None:
        self.scope = scope
        self.registry = RegistryEndpoint(registry.url)
        self.system = PravegaSystem(Endpoint(pravega.controller_uri, registry_url=registry.url))

    def source(self, stream: str, **payloads: Any) -> PravegaSource:
        return PravegaSource(f"{self.scope}/{stream}", **(payloads or {"value": Registry()}))

    def plan(self, stream: str, **payloads: Any) -> Plan:
        made = self.system.plan(PlanRequest(self.source(stream, **payloads), HOUR, "tests", basis="chained"))
        assert Plan.from_json(made.to_json()) == made
        return made

    def rows(self, stream: str, **payloads: Any) -> list[tuple[Any, str | None, str | None]]:
        plan = self.plan(stream, **payloads)
        decoder = Decoder(plan.decoding, f"{self.scope}/{stream}")
        found: list[Any] = []
        for split in plan.splits:
            for batch in self.system.read(plan, split, ["event"]):
                value, _, causes, versions = decoder.decode(Payloads(batch.column(0)))
                found += zip(value.to_pylist(), causes.to_pylist(), versions.to_pylist(), strict=True)
        return found


@pytest.fixture(scope="module")
def written(pravega_server: Any, schema_registry_server: Any) -> Any:
    scope = f"registry-{secrets.token_hex(4)}"
    pravega_server.create_scope(scope)
    for stream in STREAMS:
        pravega_server.create_stream(scope, stream)
    arguments = [pravega_server.controller_uri, schema_registry_server.url, scope]
    run_java(JAVA, arguments, schema_registry_server.classpath)
    made = Written(pravega_server, schema_registry_server, scope)
    yield made
    made.system.close()


@pytest.fixture
def registry(written: Any) -> Any:
    with RegistryClient(written.registry) as client:
        yield client


@pytest.mark.slow_except("avro-values0-none", "json-values1-gzip", "protobuf-values2-snappy")
@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize(("format_", "values"), [("avro", AVRO), ("json", JSON), ("protobuf", PROTOBUF)])
def test_what_javas_serializers_write_is_what_rows_hold(written, format_, codec, values):
    rows = written.rows(f"{format_}-{codec}")
    good = [value for value, cause, _ in rows if cause is None]
    assert good == values
    versions = [version for _, cause, version in rows if cause is None]
    assert versions == ([0, 0, 1, 1] if format_ == "avro" else [0, 0])
    bad = [cause for _, cause, _ in rows if cause is not None]
    if (format_, codec) == ("avro", "none"):
        (cause,) = bad
        assert "Java's own serializer" in cause
    else:
        assert bad == []


def test_objects_with_keys_of_no_column_are_refused_on_demand(written):
    strict = Registry(refuse_unmatched=True)
    assert [value for value, cause, _ in written.rows("json-none", value=strict) if cause is None] == JSON
    (versions,) = written.plan("json-none", value=strict).decoding.schemas.values()
    assert all(schema.strict for schema in versions.values())
    with pytest.raises(InvalidSchema, match="they are for JSON, and its schema is of avro"):
        written.plan("avro-none", value=strict)


def test_an_old_schema_with_a_new_codec_is_not_the_newest(written):
    """Encodings 2 and 3 are the schemas 0 and 1 again, compressed."""
    rows = written.rows("any")
    assert [(value, cause) for value, cause, _ in rows] == [(value, None) for value in AVRO * 2]
    assert [version for _, _, version in rows] == [0, 0, 1, 1, 2, 2, 3, 3]
    found = written.system.schemas(written.source("any"))[f"{written.scope}/any"]
    assert [(one.version, one.details["schema_version"], one.details["codec"]) for one in found] == [
        ("0", "0", ""),
        ("2", "0", "application/x-gzip"),
        ("1", "1", ""),
        ("3", "1", "application/x-gzip"),
    ]


def test_several_record_types_of_a_group_are_refused_by_name(written):
    with pytest.raises(MultipleRecordTypes, match=r"/types: its events are of 2 record types: t\.Order, t\.Payment\."):
        written.plan("types")
    held = r"3 record types: t\.Order, Serializers\$Order, google\.protobuf\.Any\."
    with pytest.raises(MultipleRecordTypes, match=held):
        written.plan("mixed")
    with pytest.raises(InvalidSchema, match=r"no such type; there are t\.Order, t\.Payment"):
        written.plan("types", value=Registry(type="Refund"))


def test_one_record_type_is_read_and_events_of_others_are_counted(written):
    order, payment = (open_all(written, "types", value=Registry(type=name)) for name in ("Order", "t.Payment"))
    assert order.rows == [{"id": 1, "cents": 100, "note": "none"}, {"id": 3, "cents": 300, "note": "now"}]
    assert payment.rows == [{"id": 2, "iban": "DE1"}, {"id": 4, "iban": "DE2"}]
    for found in (order, payment):
        assert {name: found.totals[name] for name in ("rows", "other_type", "quarantined", "dropped")} == {
            "rows": 2,
            "other_type": 2,
            "quarantined": 0,
            "dropped": 0,
        }
    assert open_all(written, "mixed", value=Registry(type="google.protobuf.Any")).rows == PROTOBUF
    with pytest.raises(InvalidSchema, match=r"'\.Serializers\$Order', '\.t\.Order'"):
        written.plan("mixed", value=Registry(type="Order"))


def test_all_record_types_become_one_table_that_says_which_each_row_is(written):
    found = open_all(written, "types", value=Registry(types="all"))
    assert found.rows == [
        {"id": 1, "cents": 100, "note": "none", "iban": None, "_type": "t.Order"},
        {"id": 2, "cents": None, "note": None, "iban": "DE1", "_type": "t.Payment"},
        {"id": 3, "cents": 300, "note": "now", "iban": None, "_type": "t.Order"},
        {"id": 4, "cents": None, "note": None, "iban": "DE2", "_type": "t.Payment"},
    ]
    assert "other_type" not in found.totals
    mixed = open_all(written, "mixed", value=Registry(types="all")).rows
    assert [row["_type"] for row in mixed] == [
        "t.Order",
        *["Serializers$Order"] * 2,
        *["google.protobuf.Any"] * 2,
    ]
    for row, values in zip(mixed, [{"id": 1, "cents": 100}, *JSON, *PROTOBUF], strict=True):
        assert {name: value for name, value in row.items() if value is not None and name != "_type"} == values


class Found(NamedTuple):
    rows: list[dict[str, Any]]
    totals: dict[str, int]


def open_all(written: Any, stream: str, **payloads: Any) -> Found:
    """The rows of a plan by field, and what its receipt counts."""
    plan = written.plan(stream, **payloads)
    fields = tuple(one.name for one in plan.decoding.value.fields)
    rows: list[dict[str, Any]] = []
    reports = []
    for split in plan.splits:
        with closing(open_split(written.system, plan, split, SplitReadOptions(columns=fields))) as reader:
            rows += [row for batch in reader for row in batch.to_pylist()]
            reports.append(reader.receipt)
    return Found(rows, compare(plan, reports, seconds=0.0).totals)


def test_schemas_without_events_have_columns_already(written, registry):
    name = GroupName(written.scope, "empty")
    with pytest.raises(SourceNotFound, match=f"group 'empty' of namespace '{written.scope}'"):
        written.plan("empty")
    registry(requests.create_group(name, "Avro"))
    assert registry(requests.create_group(name, "Avro")) is None
    with pytest.raises(InvalidSchema, match="no schema"):
        written.plan("empty")
    registry(requests.add_schema(name, avro(("a", "int"))))
    plan = written.plan("empty")
    assert str(plan.decoding.value) == "struct<a: int>"
    assert plan.is_empty


def test_a_window_is_ready_whatever_the_registry_says(written):
    question = WindowQuestion(written.source("empty", value=Registry(group="unheard-of")), HOUR, Chained())
    check_planned(written.system, question)


def test_a_group_of_another_name_and_namespace(written):
    other = Registry(group="avro-none", namespace=written.scope)
    assert [value for value, cause, _ in written.rows("avro-gzip", value=other) if cause is None] == []
    with pytest.raises(SourceNotFound, match="namespace 'elsewhere'"):
        written.plan("avro-gzip", value=Registry(namespace="elsewhere"))
    decoding = written.plan("json-none", value=Json("count long")).decoding
    assert (decoding.framing, str(decoding.value)) == ("", "struct<count: long>")


def test_more_encodings_than_are_asked_for_at_once(written, registry):
    name = GroupName(written.scope, "many")
    registry(requests.create_group(name, "Avro"))
    for number in range(20):
        schema = avro(*((f"f{i}", "int") for i in range(number + 1)))
        registry(requests.add_schema(name, schema))
        encode(registry, name, number)
    found = registry.ask(versions_of(name, {}))
    assert [one.version for one in found] == [str(number) for number in range(20)]
    assert len(found[-1].row_type.fields) == 20


def encode(registry: Any, name: GroupName, number: int) -> None:
    """As a writer does before its first event."""
    info = {"type": "t.U", "serializationFormat": "Avro", "version": number, "id": number}
    registry(
        requests.Request(
            "encode",
            f"v1/groups/{name.group}/encodings",
            lambda answer: answer.json()["encodingId"],
            {"namespace": name.namespace},
            "PUT",
            json.dumps({"versionInfo": info, "codecType": ""}).encode(),
        )
    )


def test_what_the_registry_says_of_groups_and_schemas(written, registry):
    name = GroupName(written.scope, "checks")
    one, two = avro(("a", "string")), avro(("a", "int"))
    registry(requests.create_group(name, "Avro", "Backward"))
    assert registry(requests.group(name)).policy == "Backward"
    assert registry(requests.find(name, one)) is None
    assert registry(requests.add_schema(name, one)) == 0
    assert registry(requests.add_schema(name, one)) == 0
    assert registry(requests.find(name, one)) == 0
    assert registry(requests.add_schema(name, two)) is None
    assert registry.ask(schemas.is_valid(name, one))
    assert not registry.ask(schemas.is_valid(name, two))
    assert registry.ask(schemas.is_valid(name, two, "AllowAny"))
    assert registry(requests.can_read(name, one))
    assert not registry(requests.can_read(name, two))
    registry(requests.set_policy(name, "AllowAny"))
    assert registry(requests.add_schema(name, two)) == 1
    assert [found.schema for found in registry(requests.versions(name))] == [one, two]
    assert [change.policy for change in registry(requests.history(name))] == ["Backward", "AllowAny"]
    assert registry(requests.codecs(GroupName(written.scope, "any"))) == ("application/x-gzip",)
    assert {"checks", "avro-none", "any"} <= registry.ask(schemas.all_groups(written.scope)).keys()


async def test_an_event_loop_gets_the_same(written):
    name = GroupName(written.scope, "any")
    async with AsyncRegistryClient(written.registry) as client:
        found = await client.ask(versions_of(name, {}))
    with RegistryClient(written.registry) as blocking:
        assert found == blocking.ask(versions_of(name, {}))


def test_a_registry_that_is_not_there_is_unavailable(written):
    nowhere = RegistryEndpoint("http://127.0.0.1:9", username="me", password="canary-of-a-password")
    with RegistryClient(nowhere, backoff=Backoff(attempts=1)) as client, pytest.raises(SystemUnavailable) as caught:
        client(requests.group(GroupName("s", "g")))
    assert "canary" not in f"{caught.value!r} {nowhere!r}"
    system = PravegaSystem(Endpoint("tcp://127.0.0.1:9"))
    with pytest.raises(InvalidRequest, match="registry_url"):
        system.schemas(written.source("any"))


@pytest.mark.parametrize(
    "spelling",
    ["schema-registry://http://{address}/ns", "schema-registry+http://{address}", "schema-registry://{address}"],
)
def test_a_registry_is_reached_as_its_connection_says(schema_registry_server, monkeypatch, spelling):
    url = schema_registry_server.url
    secret = "" if spelling == "schema-registry://{address}" else "me:canary-of-a-password@"
    monkeypatch.setenv("AIRFLOW_CONN_SPELT", spelling.format(address=secret + url.partition("://")[2]))
    with closing(SchemaRegistryHook("spelt")) as hook:
        works, said = hook.test_connection()
    assert works, said
    assert "accepts us" in said
