"""What users say of payloads, and what a plan pins of it."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given, settings

from airflow_provider_streams import Avro, Bytes, Json, PravegaSource, Protobuf, PulsarSource, Registry, Utf8
from airflow_provider_streams.errors import InvalidRequest, InvalidSchema, PlanMismatch
from airflow_provider_streams.model.plan.plan import Plan
from airflow_provider_streams.model.schema.ddl import parse_columns
from airflow_provider_streams.model.schema.decoding import ANY_VERSION, Decoding, WriterSchema
from airflow_provider_streams.model.schema.payload import (
    Auto,
    payload_from,
    payload_to_json,
)
from airflow_provider_streams.model.schema.payload_options import PAYLOAD_PARTS, payload_of_options
from airflow_provider_streams.systems.source_json import (
    decoded_source,
    payloads_of,
    source_from_json,
    source_to_json,
)
from tests.seeds import examples
from tests.unit.model.values import plans

SCHEMA = {"type": "record", "name": "Order", "fields": [{"name": "id", "type": "long"}]}
PAYLOADS = [
    Auto(),
    Bytes(),
    Utf8(),
    Json("id long not null, tags array<string>"),
    Avro(SCHEMA),
    Protobuf(b"\x0a\x00", "shop.Order"),
    Registry("mine", group="orders", namespace="shop", codecs={"lz4": "package.module:function"}),
]


@pytest.mark.parametrize("payload", PAYLOADS, ids=lambda one: one.format)
def test_a_payload_survives_json(payload):
    assert json.loads(json.dumps(payload_to_json(payload))) == payload_to_json(payload)  # the journal compares these
    assert payload_from(json.loads(json.dumps(payload_to_json(payload)))) == payload


def test_a_schema_is_the_same_as_text_and_as_values():
    assert Avro(SCHEMA) == Avro(json.dumps(SCHEMA, separators=(",", ":")))
    assert Protobuf(b"\x0a\x00", "m") == Protobuf("CgA=", "m")


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: Json("id"),
        lambda: Json("id long, id string"),
        lambda: Avro("{"),
        lambda: Avro({"type": "recordd"}),
        lambda: Protobuf("no base64!", "m"),
        lambda: Protobuf(b"\x0a", ""),
        lambda: payload_from("avro"),
        lambda: payload_from(Json),
        lambda: payload_from({"format": "json", "schema": "id long"}),
        lambda: PulsarSource("a", value=Registry()),
        lambda: PulsarSource("a", key="json"),
        lambda: PravegaSource("a/b", value="auto"),
    ],
)
def test_what_cannot_be_decoded_is_refused_where_it_is_written(wrong):
    with pytest.raises(InvalidSchema):
        wrong()


def test_sources_say_what_their_events_are_and_stay_the_same_source():
    plain, typed = PulsarSource("orders"), PulsarSource("orders", value="auto", key=Utf8())
    assert plain.key == typed.key
    assert plain.asset_uri == typed.asset_uri
    assert payloads_of(typed) == {"value": Auto(), "key": Utf8()}
    assert decoded_source(plain, {"value": Auto(), "key": Utf8()}) == typed
    for source in (typed, PravegaSource("a/b", value=Registry("r")), PravegaSource("a/b", value=Avro(SCHEMA))):
        assert source_from_json(json.loads(json.dumps(source_to_json(source)))) == source
    with pytest.raises(InvalidRequest, match="no key"):
        decoded_source(PravegaSource("a/b"), {"key": Utf8()})


def test_sources_that_were_written_down_before_payloads_are_read_still():
    assert source_from_json({"system": "pulsar", "topics": ["persistent://a/b/c"], "pattern": None}) == PulsarSource(
        "a/b/c"
    )
    assert source_from_json({"system": "pravega", "stream": "a/b"}) == PravegaSource("a/b")


@pytest.mark.parametrize(
    ("texts", "payload"),
    [
        ((None, None), None),
        (("auto", None), Auto()),
        (("json", "id long"), Json("id long")),
        (("avro", json.dumps(SCHEMA)), Avro(json.dumps(SCHEMA))),
        (("protobuf", "shop.Order:CgA="), Protobuf(b"\x0a\x00", "shop.Order")),
        (("registry", None), Registry()),
        (("registry", "mine"), Registry("mine")),
        (("auto", None, None, None, "0"), Auto(version=0)),
        (("auto", None, None, None, None, True), Auto(as_text=True)),
        (("registry", "mine", "A", None, "3", True), Registry("mine", type="A", version="3", as_text=True)),
        (("json", "id long", None, None, None, False), Json("id long")),
        (("json", "id long", None, None, None, False, True), Json("id long", refuse_unmatched=True)),
    ],
)
def test_payloads_of_options(texts, payload):
    assert payload_of_options("value", dict(zip(PAYLOAD_PARTS, texts, strict=False))) == payload


@pytest.mark.parametrize(
    ("texts", "what", "reason"),
    [
        ((None, "id long"), "value_schema", "nothing without value_format"),
        (("json", None), "value_schema", "value_format='json' needs it: its columns"),
        (("json", ""), "value_schema", "value_format='json' needs it"),
        (("avro", None), "value_schema", "value_format='avro' needs it"),
        (("protobuf", None), "value_schema", "value_format='protobuf' needs it"),
        (("bytes", "id long"), "value_schema", "value_format='bytes' needs none"),
        (("utf8", "id long"), "value_schema", "value_format='utf8' needs none"),
        (("xml", None), "value_format", "'xml' is none of auto, bytes"),
        (("xml", "a"), "value_format", "'xml' is none of auto, bytes"),
        (("json", "id long", None, None, "0"), "value_version", "nothing without value_format=auto or registry"),
        (("utf8", None, None, None, None, True), "value_as_text", "nothing without value_format=auto or registry"),
        ((None, None, None, None, None, True), "value_as_text", "nothing without value_format=auto or registry"),
        (("utf8", None, None, None, None, False, True), "value_refuse_unmatched", "without value_format=auto or json"),
    ],
)
def test_options_that_say_nothing_whole_are_refused(texts, what, reason):
    with pytest.raises(InvalidSchema, match=reason) as raised:
        payload_of_options("value", dict(zip(PAYLOAD_PARTS, texts, strict=False)))
    assert raised.value.what == what


DECODING = Decoding(
    parse_columns("id long, at timestamp"),
    parse_columns("id long").fields[0].type,
    {
        "shop/orders/events": {
            "0": WriterSchema("avro", json.dumps(SCHEMA)),
            "1": WriterSchema("key_value", parts=(WriterSchema("int64"), WriterSchema("utf8")), inline=True),
        },
        "shop/orders/more": {ANY_VERSION: WriterSchema("avro", json.dumps(SCHEMA))},
    },
    "message",
    WriterSchema("utf8"),
)


def test_what_is_pinned_survives_json_and_each_schema_is_written_once():
    data = json.loads(json.dumps(DECODING.to_json()))
    assert Decoding.from_json(data) == DECODING
    assert len(data["written"]) == 2
    assert "made" not in data
    made = replace(DECODING, made={"shop/orders/events": {"0": 1_795_358_564_981}})
    assert Decoding.from_json(json.loads(json.dumps(made.to_json()))) == made


@settings(max_examples=examples(20))
@given(plans())
def test_a_plan_pins_how_payloads_become_columns(plan):
    typed = replace(plan, decoding=DECODING)
    assert Plan.from_json(json.loads(json.dumps(typed.to_json()))) == typed
    other = replace(DECODING, value=parse_columns("id int, at timestamp"))
    assert len({one.fingerprint for one in (plan, typed, replace(plan, decoding=other))}) == 3
    assert plan.to_json()["decoding"] is None
    data = typed.to_json()
    data["decoding"]["framing"] = "header"
    with pytest.raises(PlanMismatch, match="was changed"):
        Plan.from_json(data)


def test_the_last_decoding_has_the_columns_of_both():
    strict, lenient = parse_columns("id long not null, name string"), parse_columns("id long, name string, day string")
    schema = WriterSchema("utf8")
    first, last = (Decoding(value, None, {"n": {"*": schema}}) for value in (strict, lenient))
    both = first.or_else(last)
    assert both.value == both.otherwise.value == lenient
    third = both.or_else(Decoding(parse_columns("id long, name string, hour int")))
    assert third.value == third.otherwise.value == third.otherwise.otherwise.value
    assert [field.name for field in third.value.fields] == ["id", "name", "day", "hour"]
    assert Decoding.from_json(json.loads(json.dumps(third.to_json()))) == third
    assert "otherwise" not in first.to_json()


def test_a_format_of_a_later_release_is_named():
    with pytest.raises(PlanMismatch, match="not 'thrift'"):
        WriterSchema.from_json({"format": "thrift"})
