from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest

from airflow_provider_streams import PravegaSource, PulsarSource, Window
from airflow_provider_streams.connections.settings import given_values, layer, resolve
from airflow_provider_streams.errors import InvalidRequest
from airflow_provider_streams.hooks.base import StreamHook, hook_for
from airflow_provider_streams.hooks.pravega import PravegaHook
from airflow_provider_streams.hooks.pulsar import PulsarHook
from airflow_provider_streams.model.stream.hold import HoldRequest
from airflow_provider_streams.systems.connection.option import Option
from airflow_provider_streams.systems.registry import declaration_of, known, load
from airflow_provider_streams.systems.schemas import OfferedSchema, SchemaAvailable
from airflow_provider_streams.systems.source_json import source_from_json, source_to_json
from airflow_provider_streams.testing.fake import FakeSource, FakeSystem
from airflow_provider_streams.windows.plan.readiness import WindowQuestion

OPTIONS = (Option("url", "", aliases=("service.url",)), Option("token", "", secret=True), Option("token_file", ""))


def merge_options(known, layers, exclusive=frozenset()):
    return given_values(resolve(known, (layer(values, "layer") for values in layers), exclusive))


def test_the_first_layer_that_names_an_option_wins():
    layers = ({"url": "a"}, {"url": "b", "token": "t"}, {"token": "u", "token_file": "f"})
    assert merge_options(OPTIONS, layers) == {"url": "a", "token": "t", "token_file": "f"}


def test_of_exclusive_options_only_the_first_layers_are_taken():
    layers = ({"token_file": "f"}, {"token": "t"})
    assert merge_options(OPTIONS, layers, frozenset({"token", "token_file"})) == {"token_file": "f"}


def test_empty_values_count_as_not_given_and_unknown_ones_are_dropped():
    assert merge_options(OPTIONS, ({"url": "", "token": None, "color": "red"}, {"url": "b"})) == {"url": "b"}


def test_aliases_are_compared_without_case():
    assert merge_options(OPTIONS, ({"Service.URL": "a"},)) == {"url": "a"}


def test_form_values_become_option_texts():
    assert merge_options(OPTIONS, ({"url": True, "token": 5, "token_file": ["a", "b"]},)) == {
        "url": "true",
        "token": "5",
        "token_file": "a,b",
    }


def test_options_come_from_the_argument_the_connection_and_the_environment_in_this_order(monkeypatch):
    extra = {"events": 10, "shards": 3}
    monkeypatch.setenv("AIRFLOW_CONN_FAKE_DEFAULT", json.dumps({"conn_type": "fake", "extra": extra}))
    monkeypatch.setenv("STREAMS_FAKE_SHARDS", "4")
    monkeypatch.setenv("STREAMS_FAKE_VALUE_BYTES", "99")
    hook = StreamHook("fake_default", system="fake", options={"events": "5"})
    assert hook.options() == {"events": "5", "shards": "3", "value_bytes": "99"}
    assert isinstance(hook.system(), FakeSystem)


async def test_an_event_loop_gets_the_same_options(monkeypatch):
    monkeypatch.setenv("AIRFLOW_CONN_FAKE_DEFAULT", json.dumps({"conn_type": "fake", "extra": {"events": 10}}))
    hook = StreamHook("fake_default", system="fake")
    assert await hook.aoptions() == hook.options() == {"events": "10"}


def test_secret_options_are_masked_in_airflows_logs(monkeypatch):
    from airflow.sdk.log import redact

    monkeypatch.setenv(
        "AIRFLOW_CONN_FAKE_DEFAULT", json.dumps({"conn_type": "fake", "extra": {"auth.token": "very-secret-9b1"}})
    )
    StreamHook("fake_default", system="fake").options()
    assert redact("the token is very-secret-9b1") == "the token is ***"


def test_a_missing_connection_is_named_with_the_fix():
    with pytest.raises(InvalidRequest, match=r"'nowhere' does not exist.*airflow connections add nowhere"):
        StreamHook("nowhere", system="fake").options()


def test_the_default_connection_need_not_exist_if_the_environment_says_enough(monkeypatch):
    with pytest.raises(InvalidRequest, match="'fake_default' does not exist"):
        StreamHook("fake_default", system="fake").options()
    monkeypatch.setenv("STREAMS_FAKE_EVENTS", "7")
    assert StreamHook("fake_default", system="fake").options() == {"events": "7"}
    with pytest.raises(InvalidRequest, match="'nowhere' does not exist"):
        StreamHook("nowhere", system="fake").options()


async def test_a_missing_connection_is_named_in_an_event_loop_too():
    with pytest.raises(InvalidRequest, match="'nowhere' does not exist"):
        await StreamHook("nowhere", system="fake").aoptions()


@pytest.mark.parametrize("system", known())
def test_what_a_system_declares_is_its_own(system):
    declared = declaration_of(system)
    assert (declared.name, declared.source_class.system, load(declared.system).name) == (system, system, system)
    assert declared.hook is None or load(declared.hook).conn_type == system


@pytest.mark.parametrize(
    "source",
    [
        PulsarSource("orders"),
        PulsarSource(["a", "b/c/d"], conn_id="other"),
        PulsarSource(pattern="shop/orders/.*"),
        FakeSource("numbers", conn_id="c"),
    ],
)
def test_a_source_survives_a_triggers_serialization(source):
    assert source_from_json(json.loads(json.dumps(source_to_json(source)))) == source


def test_an_unknown_system_is_refused():
    with pytest.raises(InvalidRequest, match=r"known: .*pulsar"):
        declaration_of("kafka")


def test_a_system_without_a_hook_of_its_own_takes_its_connections_extras():
    assert type(hook_for(FakeSource())) is StreamHook


@pytest.mark.parametrize(
    ("hook", "source"),
    [
        (PulsarHook(), PulsarSource("orders", conn_id="other")),
        (PravegaHook(), PravegaSource("shop/orders", conn_id="other")),
        (StreamHook("fake_default", system="fake"), FakeSource(conn_id="other")),
    ],
    ids=["pulsar", "pravega", "fake"],
)
async def test_a_source_of_another_connection_is_refused_by_name(hook, source):
    window = Window(datetime(2026, 11, 20, 10, tzinfo=UTC), datetime(2026, 11, 20, 11, tzinfo=UTC))
    question = WindowQuestion(source, window, declaration_of(source.system).basis())
    asked = [
        lambda: hook.own(source),
        lambda: hook.readiness(question),
        lambda: hook.schemas(source),
        lambda: hook.observe_tail(source),
    ]
    if not isinstance(source, FakeSource):
        held = HoldRequest(source, "hold", "reader")
        asked += [
            lambda: hook.of_source(source) if isinstance(hook, PravegaHook) else hook.backlog_of(source, "s"),
            lambda: hook.check(source, SchemaAvailable()),
            lambda: hook.check_schema(source, OfferedSchema("avro", "{}")),
            lambda: hook.place_hold(held),
            lambda: hook.move_hold(held),
            lambda: hook.release_hold(source, "hold", "reader"),
            lambda: hook.holds(source),
            lambda: hook.holding(source, None, list),
        ]
    refusal = r"Hook\('\w+_default'\) was asked about .*, whose conn_id is 'other': ask \w+Hook\('other'\)"
    for ask in asked:
        with pytest.raises(InvalidRequest, match=refusal):
            ask()
    for ask_in_loop in (lambda: hook.areadiness(question), lambda: hook.aobserve_tail(source)):
        with pytest.raises(InvalidRequest, match=refusal):
            await ask_in_loop()
