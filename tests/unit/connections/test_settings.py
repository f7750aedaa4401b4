"""One order for the settings of both systems, and no secret in what is shown."""

from __future__ import annotations

import json
import re

import pytest
from airflow.sdk import Connection

from airflow_provider_streams.connections.extra import extra_of
from airflow_provider_streams.connections.settings import NOT_SET, environment
from airflow_provider_streams.errors import InvalidRequest
from airflow_provider_streams.hooks.base import hook_of
from airflow_provider_streams.hooks.pravega import PravegaHook
from airflow_provider_streams.hooks.pulsar import PulsarHook
from airflow_provider_streams.hooks.schema_registry import SchemaRegistryHook
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
    connection = {"conn_type": "pravega", "host": "tcp://c1", "port": 9091, "schema": "orders"}
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
        ("token_env", "canary-5d", "(not the name of a variable)"),
        ("token_file", "canary-5d", "(not an absolute path)"),
        ("token_file", "/run/token", "/run/token"),
    ],
)
def test_a_secret_in_the_wrong_place_is_not_shown(monkeypatch, option, value, shown):
    connection = {"conn_type": "pulsar", "host": "pulsar://h", "extra": {option: value}}
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


MISTYPED = [
    (PulsarHook, "allowed_host", "allowed_hosts"),
    (PulsarHook, "tls_ca_fil", "tls_ca_file"),
    (PulsarHook, "AdminURLs", "admin_url"),
    (PravegaHook, "allowed_host", "allowed_hosts"),
    (PravegaHook, "keycloack_file", "keycloak_file"),
    (SchemaRegistryHook, "tls_verify_hostnames", "tls_verify_hostname"),
]


@pytest.mark.parametrize(("hook", "name", "meant"), MISTYPED)
async def test_a_mistyped_extra_is_refused_with_the_nearest_name(monkeypatch, hook, name, meant):
    connection = {"conn_type": hook.conn_type, "host": "h", "extra": {name: "canary-5f"}}
    monkeypatch.setenv(f"AIRFLOW_CONN_{hook.default_conn_name.upper()}", json.dumps(connection))
    said = f"connection '{hook.default_conn_name}' .*extra '{name}' is not known; did you mean '{meant}'"
    for ask in (hook().options, hook().settings, hook().endpoint):
        with pytest.raises(InvalidRequest, match=said) as failed:
            ask()
        assert "canary-5f" not in str(failed.value)
    with pytest.raises(InvalidRequest, match=said):
        await hook().aoptions()
    works, shown = hook().test_connection()
    assert not works
    assert f"did you mean '{meant}'" in shown
    with pytest.raises(InvalidRequest, match=f"option '{name}' is not known; did you mean '{meant}'"):
        hook(options={name: "canary-5f"})


@pytest.mark.parametrize(
    ("field", "advice"), [("login", "in the extra token, token_file or token_env"), ("schema", "each topic's name")]
)
async def test_a_field_that_the_system_does_not_use_is_refused(monkeypatch, field, advice):
    connection = {"conn_type": "pulsar", "host": "h", field: "canary-5f"}
    monkeypatch.setenv("AIRFLOW_CONN_PULSAR_DEFAULT", json.dumps(connection))
    said = f"'pulsar_default' of type 'pulsar' does not use the field {field}, .*{advice}"
    for ask in (PulsarHook().options, PulsarHook().settings, PulsarHook().endpoint):
        with pytest.raises(InvalidRequest, match=said) as failed:
            ask()
        assert "canary-5f" not in str(failed.value)
    with pytest.raises(InvalidRequest, match=said):
        await PulsarHook().aoptions()


@pytest.mark.parametrize(
    "uri",
    ["pulsar://h:6650", "pulsar://h:6650/", "pulsar://:the-token@pulsar%3A%2F%2Fh:6650/?admin_url=http%3A%2F%2Fh"],
)
def test_the_empty_fields_of_a_uri_are_no_mistakes(monkeypatch, uri):
    monkeypatch.setenv("AIRFLOW_CONN_PULSAR_DEFAULT", uri)
    assert PulsarHook().endpoint().service_url == "pulsar://h:6650"


@pytest.mark.parametrize("text", ["{canary-5f", "pulsar://h:6650/?admin_url=http://canary-5f"])
def test_a_variable_that_airflow_cannot_read_is_named(monkeypatch, text):
    monkeypatch.setenv("AIRFLOW_CONN_PULSAR_DEFAULT", text)
    with pytest.raises(
        InvalidRequest, match="cannot read the environment variable AIRFLOW_CONN_PULSAR_DEFAULT"
    ) as failed:
        PulsarHook().options()
    assert "canary-5f" not in str(failed.value)


@pytest.mark.parametrize("hook", [PulsarHook, PravegaHook, SchemaRegistryHook])
@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("canary-5f", "is not JSON"),
        ('{"token": "canary-5f"', "is not JSON"),
        ("service_url=pulsar://canary-5f", "is not JSON"),
        ('["canary-5f"]', "is JSON, but a list and not an object"),
        ('"canary-5f"', "is JSON, but a text and not an object"),
        ("5", "is JSON, but a number and not an object"),
        ("null", "is JSON, but null and not an object"),
    ],
)
async def test_an_extra_that_is_no_object_is_refused(monkeypatch, hook, text, problem):
    variable = f"AIRFLOW_CONN_{hook.default_conn_name.upper()}"
    monkeypatch.setenv(variable, json.dumps({"conn_type": hook.conn_type, "host": "h", "extra": text}))
    said = f"connection '{hook.default_conn_name}': its extra {problem}"
    for ask in (hook().options, hook().settings, hook().endpoint):
        with pytest.raises(InvalidRequest, match=said) as failed:
            ask()
        assert (failed.value.__cause__, failed.value.__context__) == (None, None), "the parser's error holds the text"
        assert "canary-5f" not in str(failed.value)
    with pytest.raises(InvalidRequest, match=said):
        await hook().aoptions()


def test_an_extra_without_end_is_refused():
    with pytest.raises(InvalidRequest, match="its extra is not JSON"):
        extra_of(Connection(conn_id="lake", conn_type="aws", extra="[" * 100_000))


@pytest.mark.parametrize("value", [{"access": "canary-5f"}, {}, [{"token": "canary-5f"}], ["canary-5f"]])
@pytest.mark.parametrize(("hook", "option"), [(PulsarHook, "token"), (PravegaHook, "token"), (PulsarHook, "admin_url")])
def test_an_object_where_one_value_belongs_is_called_so(monkeypatch, hook, option, value):
    variable = f"AIRFLOW_CONN_{hook.default_conn_name.upper()}"
    monkeypatch.setenv(variable, json.dumps({"conn_type": hook.conn_type, "host": "h", "extra": {option: value}}))
    kind = "an object" if isinstance(value, dict) else "a list"
    with pytest.raises(InvalidRequest, match=f"default, extra {option} is {kind}: it must be one text") as failed:
        hook().options()
    assert "canary-5f" not in str(failed.value)
    monkeypatch.setenv(variable, json.dumps({"conn_type": hook.conn_type, "host": "h"}))
    with pytest.raises(InvalidRequest, match=f"argument {option} is {kind}"):
        hook(options={option: value}).options()


def test_a_list_is_several_values_where_an_option_takes_them(monkeypatch):
    extra = {"service_url": ["pulsar://a:6650", "b:6650"], "allowed_hosts": ["a", "b"]}
    monkeypatch.setenv("AIRFLOW_CONN_PULSAR_DEFAULT", json.dumps({"conn_type": "pulsar", "extra": extra}))
    endpoint = PulsarHook().endpoint()
    assert (endpoint.service_url, endpoint.allowed_hosts) == ("pulsar://a:6650,b:6650", ("a", "b"))


@pytest.mark.parametrize("name", SYSTEMS)
def test_a_field_is_refused_or_it_becomes_a_setting(monkeypatch, name):
    """The form hides what is refused, and nothing else is left out."""
    declared = declaration_of(name)
    fields = {
        "host": f"{declaration_of(name).address.plain[0]}://h",
        "port": 1,
        "login": "canary-login",
        "password": "canary-password",
        "schema": "canary-schema",
    }
    connection = {"conn_type": name} | {one: fields[one] for one in fields.keys() - declared.form.unused.keys()}
    monkeypatch.setenv(f"AIRFLOW_CONN_{name.upper()}_DEFAULT", json.dumps(connection))
    values = " ".join(hook_of(name, f"{name}_default").options().values())
    assert {one for one, value in fields.items() if str(value) not in values} == declared.form.unused.keys()


CONTRADICTIONS = [
    (PulsarHook, {"password": "canary-6a"}, {"token": "canary-6b"}, "extra token and the field password differ"),
    (
        PulsarHook,
        {"password": "canary-6a"},
        {"token_file": "/run/t"},
        "extra token_file and the field password are cred",
    ),
    (
        PulsarHook,
        {"password": "canary-6a"},
        {"token_env": "T"},
        "extra token_env and the field password are credentials",
    ),
    (PulsarHook, {}, {"token_env": "T", "token": "canary-6b"}, "extra token and extra token_env are credentials"),
    (
        PravegaHook,
        {"password": "canary-6a"},
        {"token": "canary-6b"},
        "extra token and the field password are credentials",
    ),
    (
        PravegaHook,
        {},
        {"username": "u", "password": "canary-6a", "token": "canary-6b"},
        "extra password and extra token are credentials",
    ),
    (
        PravegaHook,
        {"login": "alice", "password": "canary-6a"},
        {"token": "canary-6b"},
        "extra token and the field password are credentials",
    ),
    (
        PravegaHook,
        {"login": "alice", "password": "canary-6a"},
        {"username": "bob"},
        "extra username and the field login differ",
    ),
    (
        PravegaHook,
        {"login": "alice", "password": "canary-6a"},
        {"keycloak_file": "/run/k", "auth_method": "basic"},
        "extra keycloak_file and the field password are credentials",
    ),
    (PravegaHook, {"schema": "one"}, {"scope": "two"}, "extra scope and the field schema differ"),
    (
        SchemaRegistryHook,
        {"password": "canary-6a"},
        {"token": "canary-6b"},
        "extra token and the field password are credentials",
    ),
    (
        SchemaRegistryHook,
        {"login": "alice", "password": "canary-6a"},
        {"username": "bob"},
        "extra username and the field login differ",
    ),
]
TLS_TYPES = {PulsarHook: "pulsar+ssl", PravegaHook: "tls", SchemaRegistryHook: "https"}


@pytest.mark.parametrize(("hook", "fields", "extra", "said"), CONTRADICTIONS)
async def test_an_extra_and_a_field_that_contradict_each_other_are_refused(monkeypatch, hook, fields, extra, said):
    connection = {"conn_type": TLS_TYPES[hook], "host": "h", **fields, "extra": extra}
    monkeypatch.setenv("AIRFLOW_CONN_TWICE", json.dumps(connection))
    for ask in (hook("twice").settings, hook("twice").options):
        with pytest.raises(InvalidRequest, match=f"connection 'twice' contradicts itself: {said}") as failed:
            ask()
        assert "canary" not in str(failed.value)
    with pytest.raises(InvalidRequest, match=said):
        await hook("twice").aoptions()


def test_an_extra_and_a_field_may_say_the_same(monkeypatch):
    connection = {"conn_type": "pulsar+ssl", "host": "h", "password": "canary-6a", "extra": {"token": "canary-6a"}}
    monkeypatch.setenv("AIRFLOW_CONN_PULSAR_DEFAULT", json.dumps(connection))
    assert PulsarHook().options()["token"] == "canary-6a"
    assert PulsarHook(options={"token": "canary-6b"}).options()["token"] == "canary-6b", "an argument wins"


def test_an_extra_that_is_like_no_option_is_refused_with_all_of_them(monkeypatch):
    connection = {"conn_type": "pulsar", "host": "h", "extra": {"zzz": 1}}
    monkeypatch.setenv("AIRFLOW_CONN_PULSAR_DEFAULT", json.dumps(connection))
    with pytest.raises(InvalidRequest, match="known: admin_url, allowed_hosts, "):
        PulsarHook().options()


def test_aliases_case_and_empty_fields_are_no_mistakes(monkeypatch):
    extra = {"serviceUrl": "pulsar://h:6650", "ADMIN_URL": "http://h:8080", "removed_option": None, "another": ""}
    monkeypatch.setenv("AIRFLOW_CONN_PULSAR_DEFAULT", json.dumps({"conn_type": "pulsar", "extra": extra}))
    assert PulsarHook().options() == {"service_url": "pulsar://h:6650", "admin_url": "http://h:8080"}


@pytest.mark.parametrize("hook", [PulsarHook, PravegaHook, SchemaRegistryHook])
@pytest.mark.parametrize("kind", ["pulsr", "http", "kafka", "generic"])
def test_a_connection_of_another_type_is_refused(monkeypatch, hook, kind):
    name = hook.default_conn_name
    monkeypatch.setenv(f"AIRFLOW_CONN_{name.upper()}", json.dumps({"conn_type": kind, "host": "h"}))
    with pytest.raises(InvalidRequest, match=rf"'{name}' is of type '{re.escape(kind)}', but .*'{hook.conn_type}'"):
        hook().options()


@pytest.mark.parametrize(
    ("variable", "near"),
    [
        ("STREAMS_PULSAR_ADMIN_URLS", "STREAMS_PULSAR_ADMIN_URL"),
        ("STREAMS_PULSAR_ALLOWED_HOST", "STREAMS_PULSAR_ALLOWED_HOSTS"),
        ("STREAMS_PULSER_ADMIN_URL", "STREAMS_PULSAR_ADMIN_URL"),
        ("STREAM_PULSAR_ADMIN_URL", "STREAMS_PULSAR_ADMIN_URL"),
        ("STREAM_PULSAR_TOKEN", "STREAMS_PULSAR_TOKEN"),
        ("STREMS_PULSAR_ALLOWED_HOSTS", "STREAMS_PULSAR_ALLOWED_HOSTS"),
    ],
)
def test_a_variable_that_is_nearly_a_setting_is_refused(monkeypatch, variable, near):
    monkeypatch.setenv("PULSAR_SERVICE_URL", "pulsar://tool:6650")
    monkeypatch.setenv(variable, "canary-5a")
    with pytest.raises(InvalidRequest) as caught:
        PulsarHook().options()
    assert str(caught.value) == f"environment variable {variable!r} is not a setting; did you mean {near!r}?"
    monkeypatch.setenv(variable, "")
    assert PulsarHook().options() == {"service_url": "pulsar://tool:6650"}


@pytest.mark.parametrize(
    ("hook", "variable", "near"),
    [
        (PulsarHook, "STREAMS_PULSAR_PASSWORD", "STREAMS_PULSAR_TOKEN"),
        (PravegaHook, "STREAMS_PRAVEGA_LOGIN", "STREAMS_PRAVEGA_USERNAME"),
        (PravegaHook, "STREAMS_PRAVEGA_SCHEMA", "STREAMS_PRAVEGA_SCOPE"),
        (PravegaHook, "STREAMS_PRAVEGA_BEARER_TOKEN", "STREAMS_PRAVEGA_.*TOKEN"),
        (SchemaRegistryHook, "STREAMS_SCHEMA_REGISTRY_LOGIN", "STREAMS_SCHEMA_REGISTRY_USERNAME"),
        (SchemaRegistryHook, "STREAMS_SCHEMA_REGISTRY_API", "STREAMS_SCHEMA_REGISTRY_"),
    ],
)
def test_a_variable_that_begins_as_ours_and_is_no_setting_is_refused(monkeypatch, hook, variable, near):
    connection = {"conn_type": TLS_TYPES[hook], "host": "h"}
    monkeypatch.setenv(f"AIRFLOW_CONN_{hook.default_conn_name.upper()}", json.dumps(connection))
    monkeypatch.setenv(variable, "canary-5a")
    with pytest.raises(InvalidRequest, match=f"'{variable}' is not a setting; did you mean '{near}") as caught:
        hook().options()
    assert "canary" not in str(caught.value)


@pytest.mark.parametrize("value", [",", " , ", " ", [], [""], [None], [" "]])
@pytest.mark.parametrize("hook", [PulsarHook, PravegaHook])
def test_a_restriction_to_nothing_is_refused_and_not_lifted(monkeypatch, hook, value):
    connection = {"conn_type": TLS_TYPES[hook], "host": "h", "extra": {"allowed_hosts": value}}
    monkeypatch.setenv(f"AIRFLOW_CONN_{hook.default_conn_name.upper()}", json.dumps(connection))
    with pytest.raises(InvalidRequest, match=r"allowed_hosts (holds no name|is a list that holds nothing)"):
        hook().endpoint()


@pytest.mark.parametrize(
    ("hook", "option", "whole", "leads_to"),
    [
        (PulsarHook, "service_url", "pulsar+ssl://h", "pulsar+ssl://h:7777"),
        (PulsarHook, "service.url", "Pulsar+SSL://a,b:1,::1/", "pulsar+ssl://a:7777,b:1,[::1]:7777/"),
        (PravegaHook, "controller", "tls://h", "tls://h:7777"),
        (PravegaHook, "controller_uri", "tcp://h", "tcp://h:7777"),
        (SchemaRegistryHook, "url", "https://h/path", "https://h:7777/path"),
        (SchemaRegistryHook, "url", "https://h:9092", "https://h:9092"),
    ],
)
def test_the_port_is_that_of_each_host_without_one_in_a_whole_address(monkeypatch, hook, option, whole, leads_to):
    for host in ("", "other"):
        connection = {"conn_type": hook.conn_type, "host": host, "port": 7777, "extra": {option: whole}}
        monkeypatch.setenv("AIRFLOW_CONN_WHOLE", json.dumps(connection))
        setting = hook("whole").settings()[hook.endpoint_class.options()[0].name]
        assert (setting.value, setting.origin) == (leads_to, f"connection whole, extra {option}")


def test_the_port_belongs_to_an_address_of_the_environment_too(monkeypatch):
    monkeypatch.setenv("AIRFLOW_CONN_PULSAR_DEFAULT", json.dumps({"conn_type": "pulsar", "port": 7777}))
    monkeypatch.setenv("PULSAR_SERVICE_URL", "pulsar://tool")
    assert PulsarHook().options()["service_url"] == "pulsar://tool:7777"
    assert PulsarHook(options={"service_url": "pulsar://own"}).options()["service_url"] == "pulsar://own"


def test_variables_of_others_are_left_alone(monkeypatch):
    """Those of other systems, of other programs, and those that Kubernetes makes for a service `streams-pulsar`."""
    of_service = ("SERVICE_HOST", "SERVICE_PORT", "SERVICE_PORT_HTTP", "PORT", "PORT_6650_TCP", "PORT_6650_TCP_ADDR")
    others = ("STREAMS_PRAVEGA_TOKEN", "STREAMS_SCHEMA_REGISTRY_URL", "STREAMS_TEST_PLACES", "STREAMS_HOME")
    others += ("UPSTREAM_PULSAR_TOKEN", "UPSTREAMS_PULSAR_TOKEN", "STREAM_PRAVEGA_TOKEN", "STREAM_HOME")
    for variable in (*others, *(f"STREAMS_PULSAR_{name}" for name in of_service)):
        monkeypatch.setenv(variable, "x")
    monkeypatch.setenv("PULSAR_SERVICE_URL", "pulsar://tool:6650")
    assert PulsarHook().options() == {"service_url": "pulsar://tool:6650"}
