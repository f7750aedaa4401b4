"""The Schema Registry's client and what its encodings mean, without a registry; a real one: `tests/integration`."""

from __future__ import annotations

import base64
import gzip
import json
from dataclasses import fields
from typing import Any

import httpx
import pyarrow as pa
import pytest

from airflow_provider_streams.errors import (
    AuthenticationFailed,
    InvalidRequest,
    InvalidSchema,
    NotAuthorized,
    RedirectRefused,
    SourceNotFound,
)
from airflow_provider_streams.formats.decoder import Decoder, Payloads
from airflow_provider_streams.formats.schema.pinned_schemas import decoding_of
from airflow_provider_streams.model.schema.payload import Registry, payload_from, payload_to_json
from airflow_provider_streams.systems.connection.backoff import Backoff
from airflow_provider_streams.systems.pravega.client.endpoint import Endpoint
from airflow_provider_streams.systems.pravega.schema_registry import requests, schemas
from airflow_provider_streams.systems.pravega.schema_registry.client import RegistryClient
from airflow_provider_streams.systems.pravega.schema_registry.endpoint import RegistryEndpoint
from airflow_provider_streams.systems.pravega.schema_registry.requests import GroupName, SchemaInfo
from airflow_provider_streams.systems.pravega.schema_registry.schemas import info_of, versions_of, writer_of
from airflow_provider_streams.systems.pravega.source import PravegaSource
from airflow_provider_streams.systems.schemas import OfferedSchema, known_of

SECRET = "canary-of-a-registry"
NAME = GroupName("shop", "orders")
AVRO = {"type": "record", "name": "U", "fields": [{"name": "a", "type": "long"}]}
GROUP = {
    "serializationFormat": {"serializationFormat": "Avro", "fullTypeName": "Avro"},
    "compatibility": {"policy": "Backward"},
    "allowMultipleTypes": False,
    "properties": {},
}


def info(format_: str = "Avro", data: bytes = json.dumps(AVRO).encode(), type_: str = "U") -> SchemaInfo:
    return SchemaInfo(type_, format_, data)


def encoding(number: int, codec: str = "", schema: SchemaInfo | None = None) -> dict[str, Any]:
    made = (schema or info()).to_json()
    version = {"type": "U", "serializationFormat": "Avro", "version": number, "id": number}
    return {"schemaInfo": made, "versionInfo": version, "codecType": {"name": codec, "properties": {}}}


def client_of(answer: Any, **settings: Any) -> RegistryClient:
    endpoint = RegistryEndpoint(**{"url": "http://registry:9092/v1/", **settings})
    return RegistryClient(endpoint, transport=httpx.MockTransport(answer), backoff=Backoff(first_seconds=0))


def serving(encodings: list[dict[str, Any]]) -> Any:
    def answer(request: httpx.Request) -> httpx.Response:
        path = request.url.path
        assert request.url.params["namespace"] == "shop"
        if path == "/v1/groups/orders":
            return httpx.Response(200, json=GROUP)
        number = int(path.rpartition("/")[2])
        return httpx.Response(200, json=encodings[number]) if number < len(encodings) else httpx.Response(404)

    return answer


def test_options_are_the_fields_of_an_endpoint():
    assert {option.name for option in RegistryEndpoint.options()} == {one.name for one in fields(RegistryEndpoint)}
    assert [option.name for option in RegistryEndpoint.options() if option.secret] == ["password", "token"]


@pytest.mark.parametrize(
    ("settings", "sent"),
    [
        ({}, None),
        ({"token": "t.o.k"}, "Bearer t.o.k"),
        ({"username": "me", "password": "pä:ss"}, "Basic " + base64.b64encode("me:pä:ss".encode()).decode()),
    ],
)
def test_each_call_shows_who_we_are(settings, sent):
    seen = []

    def answer(request):
        seen.append((str(request.url), request.headers.get("Authorization")))
        return httpx.Response(200, json=GROUP)

    with client_of(answer, **settings) as client:
        assert client(requests.group(NAME)).policy == "Backward"
    assert seen == [("http://registry:9092/v1/groups/orders?namespace=shop", sent)]


@pytest.mark.parametrize(
    "settings",
    [
        {"url": ""},
        {"url": "tcp://a:1"},
        {"url": f"http://me:{SECRET}@a"},
        {"username": "me"},
        {"password": SECRET},
        {"username": "me", "password": SECRET, "token": SECRET},
        {"token": f"{SECRET} x"},
        {"username": "m:e", "password": SECRET},
        {"request_timeout_seconds": "nan"},
        {"request_timeout_seconds": "0"},
    ],
)
def test_settings_that_make_no_sense_are_refused_without_their_secrets(settings):
    with pytest.raises(InvalidRequest) as caught:
        RegistryEndpoint.from_options({"url": "http://a", **settings})
    assert SECRET not in str(caught.value)


def test_nothing_shows_a_secret():
    endpoint = RegistryEndpoint("http://a", username="me", password=SECRET)
    system = Endpoint("tcp://a:1", registry_url="http://a", registry_username="me", registry_password=SECRET)
    assert SECRET not in f"{endpoint!r} {system!r} {system.registry!r}"
    assert system.registry.headers() == endpoint.headers()
    assert Endpoint("tcp://a:1").registry is None


@pytest.mark.parametrize(
    ("answer", "error", "said"),
    [
        (httpx.Response(401, text="no"), AuthenticationFailed, "credentials"),
        (httpx.Response(403, text="no"), NotAuthorized, "read group shop/orders"),
        (httpx.Response(404), SourceNotFound, "group 'orders' of namespace 'shop'"),
        (
            httpx.Response(307, headers={"Location": "http://evil/v1/groups/orders"}),
            RedirectRefused,
            "which may not see our credentials. Give the address that answers: the connection's host",
        ),
        (
            httpx.Response(307, headers={"Location": "ftp://evil/v1/groups/orders"}),
            RedirectRefused,
            "which is no web address. Give the address that answers: the connection's host",
        ),
    ],
)
def test_refusals_are_typed_and_hold_no_secret(answer, error, said):
    with client_of(lambda _: answer, username="me", password=SECRET) as client, pytest.raises(error) as caught:
        client(requests.group(NAME))
    assert said in str(caught.value)
    assert SECRET not in str(caught.value)


def test_a_passing_failure_is_asked_again():
    answers = [httpx.Response(503), httpx.Response(200, json=GROUP)]
    with client_of(lambda _: answers.pop(0)) as client:
        assert client(requests.group(NAME)).format == "Avro"


def test_pages_of_groups_are_put_together():
    pages = {None: ({"a": GROUP}, "1"), "1": ({"b": GROUP, "gone": None}, "2"), "2": ({}, "2")}

    def answer(request):
        groups, token = pages[request.url.params.get("continuationToken")]
        return httpx.Response(200, json={"groups": groups, "continuationToken": token})

    with client_of(answer) as client:
        assert list(client.ask(schemas.all_groups("shop"))) == ["a", "b"]


@pytest.mark.parametrize("count", [1, 15, 16, 17, 32])
def test_every_encoding_is_found(count):
    with client_of(serving([encoding(number) for number in range(count)])) as client:
        found = client.ask(versions_of(NAME, {}))
    assert [one.version for one in found] == [str(number) for number in range(count)]


def test_codecs_are_built_in_or_named_by_the_user():
    lz4 = {"application/x-lz4": "airflow_provider_streams.formats.codecs:lz4"}
    for name, found in {"": "", "application/x-gzip": "gzip", "application/x-snappy-framed": "snappy"}.items():
        assert writer_of(info(), name, {}).codec == found
    assert writer_of(info(), "application/x-lz4", lz4).codec == lz4["application/x-lz4"]
    with pytest.raises(InvalidSchema, match="Name the function that undoes it"):
        writer_of(info(), "application/x-lz4", {})


def test_events_of_a_codec_of_the_users_own_are_decoded():
    registry = Registry(codecs={"lz4": "airflow_provider_streams.formats.codecs:lz4"})
    assert payload_from(json.loads(json.dumps(payload_to_json(registry)))) == registry
    assert hash(PravegaSource("s/x", value=registry))
    with client_of(serving([encoding(0), encoding(0, "lz4"), encoding(0, "application/x-gzip")])) as client:
        found = client.ask(versions_of(NAME, dict(registry.codecs)))
    decoding = decoding_of(registry, None, known_of({"s/x": found}), "header")
    body = b"\x0e"
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, "lz4") as stream:
        stream.write(body)
    packed = [body, sink.getvalue().to_pybytes(), gzip.compress(body)]
    events = [bytes([1, 0, 0, 0, number]) + data for number, data in enumerate(packed)]
    rows = Decoder(decoding, "s/x").decode(Payloads(pa.array([*events, b"\1\0\0\0\7x"], pa.binary())))
    assert rows.value.to_pylist() == [{"a": 7}] * 3 + [None]
    assert "version 7" in rows.causes.to_pylist()[3]


@pytest.mark.parametrize(
    "schema", [info("Custom"), info("Json", b"{"), info("Json", b"\xff"), info("Avro", b"\xff"), info("Any", b"")]
)
def test_what_nothing_can_read_is_said_so(schema):
    with pytest.raises(InvalidSchema):
        writer_of(schema, "", {})


def test_a_custom_format_keeps_its_name():
    made = info("mine").to_json()
    assert made["serializationFormat"] == {"serializationFormat": "Custom", "fullTypeName": "mine"}
    assert SchemaInfo.of(made) == info("mine")
    assert SchemaInfo.of(info().to_json()) == info()


def test_an_offered_schema_has_a_name_from_its_text_or_its_own_field():
    assert info_of(OfferedSchema("avro", json.dumps(AVRO))) == info()
    assert info_of(OfferedSchema("protobuf", base64.b64encode(b"d").decode(), "shop.Order")).data == b"d"
    for offered in (OfferedSchema("json", "{}"), OfferedSchema("protobuf", "é", "n")):
        with pytest.raises(InvalidRequest):
            info_of(offered)
