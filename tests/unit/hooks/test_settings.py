"""One order for the settings of both systems, and no secret in what is shown."""

from __future__ import annotations

import json

import pytest

from airflow_provider_streams.hooks.pravega import PravegaHook
from airflow_provider_streams.hooks.pulsar import PulsarHook
from airflow_provider_streams.hooks.settings import NOT_SET, environment
from airflow_provider_streams.systems.registry import SYSTEMS, declaration_of

CASES = [
    (PravegaHook, "controller", "PRAVEGA_CONTROLLER_URI", "tcp://{}:9090"),
    (PulsarHook, "service_url", "PULSAR_SERVICE_URL", "pulsar://{}:6650"),
]


@pytest.fixture(autouse=True)
def bare_environment(monkeypatch):
    for option in (option for system in SYSTEMS for option in declaration_of(system).options):
        for name in option.variables:
            monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize(("hook", "option", "variable", "url"), CASES)
def test_each_layer_wins_over_the_ones_after_it(monkeypatch, hook, option, variable, url):
    system = hook.conn_type

    def found(**arguments) -> tuple[str, str]:
        setting = hook(**arguments).settings()[option]
        assert hook(**arguments).options()[option] == setting.value
        return setting.value, setting.origin

    monkeypatch.setenv(variable, url.format("tool"))
    assert found() == (url.format("tool"), f"environment {variable}"), "no connection is needed"
    own = f"STREAMS_{system.upper()}_{option.upper()}"
    monkeypatch.setenv(own, url.format("own"))
    assert found() == (url.format("own"), f"environment {own}")
    connection = {"conn_type": system, "host": "field", "port": int(url.rpartition(":")[2])}
    default = f"{system}_default"
    monkeypatch.setenv(f"AIRFLOW_CONN_{default.upper()}", json.dumps(connection))
    assert found() == (url.format("field"), f"connection {default}, field of {option}")
    connection["extra"] = {option: url.format("extra")}
    monkeypatch.setenv(f"AIRFLOW_CONN_{default.upper()}", json.dumps(connection))
    assert found() == (url.format("extra"), f"connection {default}, extra {option}")
    assert found(options={option: url.format("argument")}) == (url.format("argument"), f"argument {option}")


def test_pravega_fields_are_controller_scope_and_user(monkeypatch):
    connection = {"conn_type": "pravega", "host": "c1", "port": 9091, "schema": "orders"}
    connection |= {"login": "reader", "password": "canary-5a"}
    monkeypatch.setenv("AIRFLOW_CONN_PRAVEGA_DEFAULT", json.dumps(connection))
    endpoint = PravegaHook().endpoint()
    assert (endpoint.controller, endpoint.scope, endpoint.method) == ("tcp://c1:9091", "orders", "basic")
    assert (endpoint.username, endpoint.password) == ("reader", "canary-5a")
    assert PravegaHook().stream("s") == "orders/s"
    assert PravegaHook().stream("other/s") == "other/s"


@pytest.mark.parametrize("host", ["c1:9091", "tls://c1", "tls://c1:9091,c2:9091"])
def test_a_host_may_say_more_than_a_name(monkeypatch, host):
    monkeypatch.setenv("AIRFLOW_CONN_PRAVEGA_DEFAULT", json.dumps({"conn_type": "pravega", "host": host}))
    endpoint = PravegaHook().endpoint()
    assert endpoint.tls == host.startswith("tls")
    assert endpoint.controllers[0] == ("c1", 9091 if "9091" in host else 9090)


def test_every_option_says_where_it_is_from(monkeypatch):
    monkeypatch.setenv("STREAMS_PRAVEGA_CONTROLLER", "tcp://c:9090")
    settings = PravegaHook().settings()
    assert settings.keys() == {option.name for option in declaration_of("pravega").options}
    assert (settings["read_ahead"].shown, settings["read_ahead"].origin) == ("2", "default")
    assert (settings["token"].shown, settings["token"].origin) == ("", NOT_SET)


def test_no_secret_is_shown(monkeypatch):
    monkeypatch.setenv("STREAMS_PRAVEGA_CONTROLLER", "tcp://me:canary-5b@c:9090")
    monkeypatch.setenv("STREAMS_PRAVEGA_TOKEN", "canary-5b")
    settings = PravegaHook().settings()
    assert settings["token"].value == "canary-5b"
    assert (settings["token"].shown, settings["controller"].shown) == ("***", "tcp://c:9090")
    assert "canary-5b" not in repr(settings["token"])


@pytest.mark.parametrize(
    ("option", "value", "shown"),
    [
        ("service_url", "pulsar://me:canary-5d@h:6650", "pulsar://h:6650"),
        ("service_url", "me:canary-5d@h:6650", ".."),
        ("service_url", "canary-5d", ".."),
        ("service_url", "pulsar://h:6650/?token=canary-5d", "pulsar://h:6650"),
        ("service_url", "pulsar://h:6650/?token=a@canary-5d", "pulsar://.."),
        ("service_url", "pulsar://a:6650,me:canary-5d@b:6650", "pulsar://b:6650"),
        ("admin_url", "h:8080?token=canary-5d", ".."),
        ("listener_name", "the-token-5e", "***"),
        ("listener_name", "http://me:canary-5d@h", "http://h"),
        ("token_env", "canary-5d", "(which is no name of a variable)"),
        ("token_file", "canary-5d", "(which is no absolute path)"),
        ("token_file", "/run/token", "/run/token"),
    ],
)
def test_a_secret_in_the_wrong_place_is_not_shown(monkeypatch, option, value, shown):
    connection = {"conn_type": "pulsar", "host": "h", "extra": {option: value}}
    monkeypatch.setenv("AIRFLOW_CONN_PULSAR_DEFAULT", json.dumps(connection))
    token = {} if option.startswith("token") else {"token": "the-token-5e"}
    assert PulsarHook(options=token).settings()[option].shown == shown


def test_every_address_is_shown_as_one():
    for system in ("pulsar", "pravega"):
        named = [one.name for one in declaration_of(system).options if "://" in one.help]
        assert named == [one.name for one in declaration_of(system).options if one.is_address]


def test_credentials_are_taken_from_our_own_names_only(monkeypatch):
    for system in ("pulsar", "pravega"):
        options = declaration_of(system).options
        assert any(option.variables for option in options)
        assert not [option for option in options if option.variables and (option.secret or option.reads)]
    monkeypatch.setenv("PULSAR_TOKEN", "canary-5c")
    assert not any(environment("pulsar", declaration_of("pulsar").options))
