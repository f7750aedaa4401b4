"""Every documented way to write a connection leads where the page says, or is refused by the names of its fields."""

from __future__ import annotations

import json
from typing import Any

import pytest
from airflow.providers.common.compat.sdk import AirflowNotFoundException
from airflow.sdk import BaseHook

from airflow_provider_streams.connections.extra import extra_of
from airflow_provider_streams.connections.table_properties import properties_of
from airflow_provider_streams.errors import InvalidRequest
from airflow_provider_streams.hooks.base import hook_of
from airflow_provider_streams.hooks.pravega import PravegaHook
from airflow_provider_streams.hooks.pulsar import PulsarHook
from airflow_provider_streams.hooks.schema_registry import SchemaRegistryHook
from airflow_provider_streams.systems.connection import catalog_properties
from airflow_provider_streams.systems.connection.address import Parts, address_of, normal
from airflow_provider_streams.systems.pravega.client import endpoint as pravega
from airflow_provider_streams.systems.pravega.schema_registry import endpoint as registry
from airflow_provider_streams.systems.pulsar.client import endpoint as pulsar
from tests.unit.connections.spellings import CLEAR, SECRET, Spelling, spellings

SPELLINGS = spellings()
RULES = {
    "Pulsar": pulsar.ADDRESS,
    "Pravega": pravega.ADDRESS,
    "Schema Registry": registry.ADDRESS,
    "Iceberg": catalog_properties.ADDRESS,
}
ADDRESSES = {
    "Pulsar": lambda name: PulsarHook(name).endpoint().service_url,
    "Pravega": lambda name: PravegaHook(name).endpoint().controller,
    "Schema Registry": lambda name: SchemaRegistryHook(name).endpoint().url,
    "Iceberg": lambda name: properties_of(name)["uri"],
}
OF_THE_HOOKS = (
    "needs the option password",
    "has no",
    "belong together",
    "is given without",
    "does not use",
    "REST",
    "holds a colon",
    "extra uri has a",
    "the same",
    "differ",
    "are credentials",
    "are both given",
    "must end with",
    "unknown scheme",
)
"""Reasons that are not about the address alone."""


def ids(one: Spelling) -> str:
    return f"{one.system}: {one.written}"


def test_the_page_has_enough_of_them_for_every_system() -> None:
    assert len(SPELLINGS) >= 80
    assert {one.system for one in SPELLINGS} == RULES.keys()
    assert len(set(SPELLINGS)) == len(SPELLINGS)
    for system in RULES:
        assert any(one.is_refused for one in SPELLINGS if one.system == system)


def test_a_secret_in_clear_is_marked_as_such() -> None:
    for one in SPELLINGS:
        in_clear = SECRET in one.written and not one.is_refused and not one.is_tls
        assert one.outcome.endswith(CLEAR) == in_clear, one


@pytest.mark.parametrize("one", SPELLINGS, ids=ids)
def test_a_hook_goes_where_the_page_says(monkeypatch: pytest.MonkeyPatch, one: Spelling) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_SPELT", one.written)
    if not one.is_refused:
        assert ADDRESSES[one.system]("spelt") == one.address
        return
    with pytest.raises(InvalidRequest) as caught:
        ADDRESSES[one.system]("spelt")
    for reason in one.reasons:
        assert reason in str(caught.value)
    assert SECRET not in str(caught.value)


@pytest.mark.parametrize("one", SPELLINGS, ids=ids)
def test_one_function_decides_for_all_systems(monkeypatch: pytest.MonkeyPatch, one: Spelling) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_SPELT", one.written)
    rules = RULES[one.system]
    try:
        parts = parts_of(rules.option)
    except AirflowNotFoundException:
        assert one.reasons == ["Airflow cannot read the environment variable"]
        return
    if one.is_refused and any(known in one.outcome for known in OF_THE_HOOKS):
        return
    protected = ["a secret"] if (SECRET in one.written or "tls_" in one.written) and one.system != "Iceberg" else []
    if not one.is_refused:
        assert normal(address_of(parts, rules, protected)) == one.address
        return
    with pytest.raises(InvalidRequest) as caught:
        address_of(parts, rules, protected)
    assert all(reason in str(caught.value) for reason in one.reasons)


def parts_of(option: str) -> Parts:
    connection = BaseHook.get_connection("spelt")
    fields = (connection.conn_type, connection.host, connection.port, connection.schema)
    return Parts("spelt", *fields, whole=extra_of(connection).get(option) or "", place=f"extra {option}")


@pytest.mark.parametrize("variable", ["STREAMS_PULSAR_TOKEN", "STREAMS_PULSAR_TLS_CA_FILE"])
def test_what_the_environment_adds_does_not_travel_by_a_guess(monkeypatch: pytest.MonkeyPatch, variable: str) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_PULSAR_DEFAULT", "pulsar://broker:6650")
    assert PulsarHook().endpoint().service_url == "pulsar://broker:6650"
    monkeypatch.setenv(variable, "canary-91")
    with pytest.raises(InvalidRequest, match=f"environment {variable}.*nothing says whether to use TLS") as caught:
        PulsarHook().endpoint()
    assert "canary-91" not in str(caught.value)
    argument = {"service_url": "pulsar+ssl://other:6651"}
    assert PulsarHook(options=argument).endpoint().service_url == "pulsar+ssl://other:6651"


PULSAR_WITH_TLS = "pulsar+ssl://:canary-86@broker:6651"
REGISTRY_WITH_TLS = "https://user:canary-86@registry:9092"
SECRETS_OF_A_REGISTRY = {"registry_url": "", "registry_username": "u", "registry_password": "canary-86"}


@pytest.mark.parametrize(
    ("hook", "written", "variable", "address"),
    [
        (PulsarHook, PULSAR_WITH_TLS, "PULSAR_ADMIN_URL", "http://admin:8080"),
        (PulsarHook, PULSAR_WITH_TLS, "STREAMS_PULSAR_ADMIN_URL", "HTTP://admin:8080"),
        (PulsarHook, "pulsar+ssl://broker/?token_file=%2Frun%2Ft", "PULSAR_ADMIN_URL", "http://admin:8080"),
        (PulsarHook, "pulsar://:canary-86@", "PULSAR_SERVICE_URL", "pulsar://broker:6650"),
        (PravegaHook, "tls://u:canary-86@controller:9090", "STREAMS_PRAVEGA_REST_URL", "http://controller:9091"),
        (
            PravegaHook,
            json.dumps({"conn_type": "tcp", "host": "controller", "port": 9090, "extra": SECRETS_OF_A_REGISTRY}),
            "STREAMS_PRAVEGA_REGISTRY_URL",
            "http://registry:9092",
        ),
        (
            SchemaRegistryHook,
            json.dumps({"conn_type": "schema_registry", "login": "u", "password": "canary-86"}),
            "PRAVEGA_SCHEMA_REGISTRY_URI",
            "http://registry:9092",
        ),
    ],
)
async def test_an_address_of_the_environment_without_tls_gets_no_secret_of_a_connection(
    monkeypatch: pytest.MonkeyPatch, hook: Any, written: str, variable: str, address: str
) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_SPELT", written)
    monkeypatch.setenv(variable, address)
    for ask in (hook("spelt").settings, hook("spelt").options):
        with pytest.raises(
            InvalidRequest, match=f"would travel without TLS to .*{variable}.*in the connection"
        ) as caught:
            ask()
        assert "canary" not in str(caught.value)
    with pytest.raises(InvalidRequest, match=variable):
        await hook("spelt").aoptions()


@pytest.mark.parametrize(
    ("written", "variable", "address"),
    [
        (PULSAR_WITH_TLS, "PULSAR_ADMIN_URL", "https://admin:8443"),
        ("pulsar+ssl://broker:6651", "PULSAR_ADMIN_URL", "http://admin:8080"),
        ("pulsar://:canary-86@pulsar%3A%2F%2Fbroker:6650", "PULSAR_ADMIN_URL", "http://admin:8080"),
        (f"{PULSAR_WITH_TLS}/?admin_url=http%3A%2F%2Fadmin%3A8080", "PULSAR_ADMIN_URL", "http://other:8080"),
    ],
)
def test_an_address_of_the_environment_that_gets_no_secret_in_clear_by_a_guess_is_taken(
    monkeypatch: pytest.MonkeyPatch, written: str, variable: str, address: str
) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_SPELT", written)
    monkeypatch.setenv(variable, address)
    assert PulsarHook("spelt").settings()["admin_url"].value == address.replace("other", "admin")


def test_what_the_environment_says_of_both_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_SPELT", "pulsar+ssl://broker:6651")
    monkeypatch.setenv("PULSAR_ADMIN_URL", "http://admin:8080")
    monkeypatch.setenv("STREAMS_PULSAR_TOKEN", "canary-86")
    assert PulsarHook("spelt").options()["token"] == "canary-86"


def test_a_type_with_tls_contradicts_an_address_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PULSAR_SERVICE_URL", "pulsar://broker:6650")
    monkeypatch.setenv("AIRFLOW_CONN_PULSAR_DEFAULT", json.dumps({"conn_type": "pulsar+ssl", "password": "canary-92"}))
    with pytest.raises(
        InvalidRequest, match=r"conn_type says pulsar\+ssl://.*environment PULSAR_SERVICE_URL says pulsar://"
    ):
        PulsarHook().endpoint()


async def test_an_event_loop_is_refused_in_the_same_way(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_PULSAR_DEFAULT", "pulsar://:canary-93@broker:6650")
    with pytest.raises(InvalidRequest, match="nothing says whether to use TLS"):
        await PulsarHook().aoptions()


@pytest.mark.parametrize(
    ("host", "port", "address"),
    [
        ("one,two:6652", 6651, "pulsar://one:6651,two:6652"),
        (" one , two ", 6651, "pulsar://one:6651,two:6651"),
        ("fe80::1%eth0", 6651, "pulsar://[fe80::1%eth0]:6651"),
        ("[::1]:6651", 6651, "pulsar://[::1]:6651"),
        ("::1,[::2]:6652", 6651, "pulsar://[::1]:6651,[::2]:6652"),
        ("broker/", None, "pulsar://broker"),
        ("", 6651, ""),
        (None, None, ""),
    ],
)
def test_each_host_keeps_its_port_and_gets_one(host: str | None, port: int | None, address: str) -> None:
    assert address_of(Parts("c", "pulsar", host, port), pulsar.ADDRESS) == address


@pytest.mark.parametrize("host", ["a b", "a:", "a:x", "a:1:2", "[::1", "::1]", "a,,b", "://h", "[::1]x", "a:123456"])
def test_what_is_no_host_is_refused_without_being_shown(host: str) -> None:
    with pytest.raises(InvalidRequest, match="'c': host holds something that is no host") as caught:
        address_of(Parts("c", "pulsar", host, None), pulsar.ADDRESS)
    assert host not in str(caught.value)


def test_a_token_in_place_of_a_scheme_is_not_shown() -> None:
    with pytest.raises(InvalidRequest, match="host has the scheme of another system") as caught:
        address_of(Parts("c", "pulsar", "eyJhbGciOi.canary-94://broker", 6650), pulsar.ADDRESS)
    assert "canary" not in str(caught.value)


HANDED_ON = [one for one in SPELLINGS if "cannot read" not in one.outcome and '"conn_type": ""' not in one.written]
"""Airflow writes a connection without a type as a URI that it does not read."""


@pytest.mark.parametrize("one", HANDED_ON, ids=ids)
def test_a_connection_that_airflow_hands_on_as_a_uri_means_the_same(
    monkeypatch: pytest.MonkeyPatch, one: Spelling
) -> None:
    """As its worker does to test a connection."""
    monkeypatch.setenv("AIRFLOW_CONN_SPELT", one.written)
    monkeypatch.setenv("AIRFLOW_CONN_HANDED_ON", BaseHook.get_connection("spelt").get_uri())
    if one.is_refused:
        with pytest.raises(InvalidRequest) as caught:
            ADDRESSES[one.system]("handed_on")
        assert SECRET not in str(caught.value)
    else:
        assert ADDRESSES[one.system]("handed_on") == one.address


@pytest.mark.parametrize("system", ["Pulsar", "Pravega"])
def test_planning_and_spark_get_the_same_address(monkeypatch: pytest.MonkeyPatch, system: str) -> None:
    for one in SPELLINGS:
        if one.system == system and not one.is_refused:
            monkeypatch.setenv("AIRFLOW_CONN_SPELT", one.written)
            hook = hook_of(system.lower(), "spelt")
            assert normal(hook.options()[RULES[system].option]) == one.address
            assert normal(hook.planning_options()[RULES[system].option]) == one.address
