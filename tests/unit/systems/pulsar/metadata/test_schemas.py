"""What schemas of Pulsar mean, from what brokers tell of them."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace

import httpx
import pytest

from airflow_provider_streams.errors import IncompatibleSchemas, InvalidSchema, MultipleRecordTypes, NotAuthorized
from airflow_provider_streams.formats.schema.row_types import type_of
from airflow_provider_streams.model.schema.decoding import FORMATS
from airflow_provider_streams.model.schema.payload import Auto, Bytes
from airflow_provider_streams.systems.connection.backoff import Backoff
from airflow_provider_streams.systems.io_free_rules import run
from airflow_provider_streams.systems.pulsar.client.admin import requests
from airflow_provider_streams.systems.pulsar.client.admin.client import AdminClient
from airflow_provider_streams.systems.pulsar.client.admin.responses import StoredSchema
from airflow_provider_streams.systems.pulsar.client.endpoint import Endpoint
from airflow_provider_streams.systems.pulsar.metadata.schemas import decoding_for, version_of, versions_of, writer_of
from airflow_provider_streams.systems.pulsar.source import PulsarSource
from airflow_provider_streams.systems.schemas import SchemaAvailable, known_of, types_of

TOPIC = "persistent://shop/web/orders"


def record(*fields: tuple[str, object]) -> str:
    return json.dumps(
        {"type": "record", "name": "R", "fields": [{"name": name, "type": kind} for name, kind in fields]}
    )


def info(*fields: tuple[int, str, str, str]) -> dict[str, str]:
    told = [{"number": n, "name": name, "type": kind, "label": label} for n, name, kind, label in fields]
    return {"__PARSING_INFO__": json.dumps(told)}


@pytest.mark.parametrize(
    "kind",
    [
        "BYTES", "STRING", "BOOLEAN", "INT8", "INT16", "INT32", "INT64", "FLOAT", "DOUBLE", "DATE", "TIME", "TIMESTAMP",
        "INSTANT", "LOCAL_DATE", "LOCAL_TIME", "LOCAL_DATE_TIME",
    ],
)  # fmt: skip
def test_every_type_of_single_values_has_a_format(kind):
    # pulsar-client registers `null` as the text of such a schema, Java's client none
    for text in ("", "null"):
        assert writer_of(kind, text, {}).format in FORMATS


def test_json_of_the_oldest_clients_is_json_schema():
    line = {"type": "object", "id": "urn:jsonschema:Line", "properties": {"item": {"type": "string"}}}
    order = {"first": line, "second": {"type": "object", "$ref": "urn:jsonschema:Line"}, "n": {"type": "integer"}}
    text = json.dumps({"type": "object", "id": "urn:jsonschema:Order", "properties": order})
    found = type_of(writer_of("JSON", text, {}))
    assert str(found) == "struct<first: struct<item: string>, second: struct<item: string>, n: long>"


def test_protobuf_of_the_older_kind_is_put_together_of_what_is_told():
    fields = info(
        (1, "name", "STRING", "LABEL_OPTIONAL"),
        (3, "counts", "SINT64", "LABEL_REPEATED"),
        (200, "kind", "ENUM", "LABEL_OPTIONAL"),
    )
    text = json.dumps({"type": "record", "name": "Order", "namespace": "shop.Outer$", "fields": []})
    found = writer_of("PROTOBUF", text, fields)
    assert found.message == "shop.Outer.Order"
    assert str(type_of(found)) == "struct<name: string, counts: array<long>, kind: int>"
    for properties in (info((1, "inner", "MESSAGE", "LABEL_OPTIONAL")), {}, {"__PARSING_INFO__": "[1"}):
        with pytest.raises(InvalidSchema, match="Give the descriptor"):
            writer_of("PROTOBUF", text, properties)


@pytest.mark.parametrize(
    ("kind", "data", "properties"),
    [
        ("JSON", "{", {}),
        ("JSON", "[]", {}),
        ("PROTOBUF_NATIVE", "{}", {}),
        ("PROTOBUF_NATIVE", "no json", {}),
        ("KEY_VALUE", "[]", {}),
        ("KEY_VALUE", '{"key": "", "value": ""}', {}),
        ("KEY_VALUE", '{"key": "", "value": ""}', {"key.schema.type": "KEY_VALUE", "value.schema.type": "STRING"}),
        ("EXTERNAL", "x", {}),
        ("FROM_THE_FUTURE", "x", {}),
    ],
)
def test_what_nothing_can_read_is_said_by_name(kind, data, properties):
    with pytest.raises(InvalidSchema) as caught:
        writer_of(kind, data, properties)
    assert caught.value.what == kind
    assert version_of(StoredSchema(3, kind, data, properties)).problem.reason == caught.value.reason


def test_an_old_version_that_nothing_can_read_hides_no_newer_one():
    good, bad = StoredSchema(1, "AVRO", record(("a", "int"))), StoredSchema(0, "AVRO", "{}")
    assert list(known_of({"t": (version_of(bad), version_of(good))})["t"]) == ["1"]
    with pytest.raises(InvalidSchema, match=r"t, version 0: .*not an Avro schema"):
        known_of({"t": (version_of(good), version_of(bad))})


def named(name: str, *fields: tuple[str, object], **rest: object) -> str:
    return json.dumps({**json.loads(record(*fields)), "name": name, **rest})


def pair(key: str, value: str) -> StoredSchema:
    properties = {"key.schema.type": "AVRO", "value.schema.type": "JSON", "kv.encoding.type": "SEPARATED"}
    return StoredSchema(0, "KEY_VALUE", json.dumps({"key": key, "value": value}), properties)


@pytest.mark.parametrize(
    ("stored", "value", "key"),
    [
        (StoredSchema(0, "AVRO", named("Order", namespace="t", aliases=["Old", "u.Old"])), "t.Order", ""),
        (StoredSchema(0, "JSON", named("shop.Order", ("a", "int"))), "shop.Order", ""),
        (StoredSchema(0, "JSON", '{"type": "object", "id": "urn:jsonschema:Order"}'), "", ""),
        (StoredSchema(0, "STRING", ""), "string", ""),
        (StoredSchema(0, "EXTERNAL", "x"), "", ""),
        (StoredSchema(0, "AVRO", "{}"), "", ""),
        (pair(named("K", ("a", "int")), named("V", ("a", "int"))), "V", "K"),
    ],
)
def test_what_a_schema_calls_its_records(stored, value, key):
    found = version_of(stored)
    assert (found.record.name, found.key_record.name) == (value, key)
    assert found.record.aliases == (("t.Old", "u.Old") if value == "t.Order" else ())


def test_keys_of_several_record_types_are_refused_unless_the_user_says_how_they_are_written():
    value = named("V", ("a", "int"))
    stored = [pair(named(key, ("a", "int")), value) for key in ("K", "L")]
    found = {"t": tuple(version_of(replace(one, version=number)) for number, one in enumerate(stored))}
    with pytest.raises(MultipleRecordTypes, match=r"its keys are of 2 record types: K, L\. Say how keys are written"):
        types_of(found, Auto())
    assert types_of(found, Auto(), Bytes()).read == {"V"}


def test_a_schema_with_the_columns_of_any_type_is_there():
    versions = [
        StoredSchema(number, "AVRO", text)
        for number, text in enumerate((named("A", ("a", "int")), named("B", ("b", "int"))))
    ]
    found = {"t": tuple(map(version_of, versions))}
    assert SchemaAvailable(columns=("a",)).judge(found).ready
    assert SchemaAvailable(columns=("b",)).judge(found).ready
    assert "lacks a" in SchemaAvailable(columns=("a", "b")).judge(found).because


def test_topics_are_asked_once_and_named_as_plans_name_them():
    asked = []

    def answer(calls):
        asked.extend(call.path for call in calls)
        return [(StoredSchema(0, "STRING", ""), StoredSchema(1, "NONE", "")), None]

    found = run(versions_of([f"{TOPIC}-partition-{number}" for number in range(3)] + [f"{TOPIC}/2"]), answer)
    assert asked == ["admin/v2/schemas/shop/web/orders/schemas", "admin/v2/schemas/shop/web/orders%2F2/schemas"]
    assert {name: [one.version for one in versions] for name, versions in found.items()} == {
        "shop/web/orders": ["0"],
        "shop/web/orders/2": [],
    }
    with pytest.raises(IncompatibleSchemas, match=r"shop/web/orders/2 has no schema, shop/web/orders has"):
        known_of(found)


def test_a_plan_pins_when_versions_were_registered():
    stored = StoredSchema(0, "STRING", "", {}, 1_795_358_564_981), StoredSchema(1, "STRING", "")
    decoding = run(decoding_for(PulsarSource(TOPIC, value="auto"), [TOPIC]), lambda _: [stored])
    assert decoding.made == {"shop/web/orders": {"0": 1_795_358_564_981}}
    assert run(decoding_for(PulsarSource(TOPIC, value="auto"), [TOPIC]), lambda _: [None]).made == {}


def test_a_schema_that_the_user_gives_asks_nobody():
    decoding = run(decoding_for(PulsarSource(TOPIC, value="utf8"), [TOPIC]), lambda _: pytest.fail("asked"))
    assert str(decoding.value) == "string"
    assert run(decoding_for(PulsarSource(TOPIC), [TOPIC]), lambda _: pytest.fail("asked")) is None


def test_a_schema_is_available_with_its_version_and_columns():
    nested = {"type": "record", "name": "N", "fields": [{"name": "x", "type": "int"}]}
    versions = {"t": (version_of(StoredSchema(4, "AVRO", record(("a", {"type": "array", "items": nested})))),)}
    assert SchemaAvailable(4, ("a", "a.x")).judge(versions).ready
    assert SchemaAvailable(5).judge(versions).because == "t has version 4"
    assert SchemaAvailable(0, ("b", "a.x")).judge(versions).because == "t lacks b"
    assert SchemaAvailable().judge({"t": ()}).because == "t has no schema"


def client_of(*answers: httpx.Response) -> tuple[AdminClient, list[httpx.Request]]:
    """A client of a broker that gives these answers, and what was asked."""
    asked: list[httpx.Request] = []
    left = list(answers)

    def answer(request: httpx.Request) -> httpx.Response:
        asked.append(request)
        return left.pop(0)

    endpoint = Endpoint("pulsar://broker", "http://broker:8080", token="t")
    return AdminClient(endpoint, transport=httpx.MockTransport(answer), backoff=Backoff(first_seconds=0)), asked


def test_what_does_not_fit_is_an_answer_and_not_asked_again():
    said = {"reason": "\n --- An unexpected error occurred in the server ---\n\nMessage: Incompatible schema: exists"}
    client, asked = client_of(httpx.Response(500, json=said))
    found = client(requests.compatibility(TOPIC, "AVRO", "{}", {}))
    assert (found.compatible, found.reason) == (False, "Incompatible schema: exists")
    assert len(asked) == 1
    client, _ = client_of(httpx.Response(200, json={"compatibility": False, "schemaCompatibilityStrategy": "FULL"}))
    assert client(requests.compatibility(TOPIC, "AVRO", "{}", {})).policy == "FULL"


def test_a_known_user_without_the_right_is_not_unknown():
    said = {"reason": "Don't have permission to administrate resources on this tenant"}
    client, _ = client_of(httpx.Response(401, json=said))
    with pytest.raises(NotAuthorized, match="administrate"):
        client(requests.compatibility(TOPIC, "AVRO", "{}", {}))


@pytest.mark.parametrize(
    "system", ["pulsar.metadata.schemas", "pulsar.planning.planner", "pravega.system", "pravega.schema_registry.client"]
)
def test_learning_schemas_loads_no_arrow(system):
    code = (
        f"import sys, airflow_provider_streams.systems.{system}\n"
        "from airflow_provider_streams.systems.pulsar.metadata.schemas import writer_of\n"
        "from airflow_provider_streams.formats.schema.pinned_schemas import decoding_of\n"
        "from airflow_provider_streams.model.schema.payload import Auto\n"
        f"decoding_of(Auto(), None, {{'t': {{'0': writer_of('JSON', {record(('a', 'int'))!r}, {{}})}}}}, 'message')\n"
        "print([name for name in ('pyarrow', 'numpy', 'pandas') if name in sys.modules])"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"
