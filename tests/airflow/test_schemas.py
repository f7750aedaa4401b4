"""Schemas as a DAG and a person ask for them: operator, sensor, hook and command line, on real servers."""

from __future__ import annotations

import argparse
import json
import secrets
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow.dataset as ds
import pytest
from airflow.providers.common.compat.sdk import AirflowFailException

from airflow_provider_streams import (
    CheckSchemaCompatibilityOperator,
    PravegaSource,
    PulsarSource,
    Registry,
    SchemaAvailableSensor,
)
from airflow_provider_streams.cli.parser import get_streams_cli_commands
from airflow_provider_streams.errors import InvalidRequest, InvalidSchema, SourceNotFound
from airflow_provider_streams.hooks.base import hook_for
from airflow_provider_streams.hooks.schema_registry import SchemaRegistryHook
from airflow_provider_streams.systems.pravega.schema_registry.requests import SchemaInfo

SECRET = "canary-of-a-registry"


def record(**fields: Any) -> str:
    made = [{"name": name, "type": kind} for name, kind in fields.items()]
    return json.dumps({"type": "record", "name": "Row", "fields": made})


MAYBE = ["null", "string"]
FIRST, SECOND = record(id="long"), json.dumps(
    {
        "type": "record",
        "name": "Row",
        "fields": [
            {"name": "id", "type": "long"},
            {"name": "at", "type": {"type": "record", "name": "At", "fields": [{"name": "x", "type": "int"}]},
             "default": {"x": 1}},
        ],
    }
)  # fmt: skip
OTHER = record(id="string")


@pytest.fixture
def streams() -> Callable[..., None]:
    """Runs `airflow streams ..` in this process."""
    from airflow.cli.cli_parser import _add_command

    parser = argparse.ArgumentParser(prog="airflow")
    subparsers = parser.add_subparsers()
    for command in get_streams_cli_commands():
        _add_command(subparsers, command)

    def run(*arguments: str) -> None:
        args = parser.parse_args(["streams", *arguments])
        args.func(args)

    return run


@pytest.fixture
def topic(pulsar_server: Any, pulsar_namespace: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """A topic without a schema, at `pulsar_default`."""
    extra = {"service_url": pulsar_server.service_url, "admin_url": pulsar_server.admin_url}
    monkeypatch.setenv("AIRFLOW_CONN_PULSAR_DEFAULT", json.dumps({"conn_type": "pulsar", "extra": extra}))
    name = f"{pulsar_namespace}/t-{secrets.token_hex(4)}"
    pulsar_server.create_topic(name, 2)
    return name


def register(server: Any, topic: str, schema: str, type_: str = "AVRO") -> None:
    body = {"type": type_, "schema": schema, "properties": {}}
    server.admin("POST", f"schemas/{topic}/schema", body)


@pytest.fixture
def group(schema_registry_server: Any, monkeypatch: pytest.MonkeyPatch) -> PravegaSource:
    """A source whose group at `registry_default` does not exist; nothing listens at `pravega_default`."""
    connection = {
        "conn_type": "schema_registry",
        "host": schema_registry_server.url,
        "schema": "elsewhere",
        "login": "me",
        "password": SECRET,
    }
    monkeypatch.setenv("AIRFLOW_CONN_REGISTRY_DEFAULT", json.dumps(connection))
    pravega = {"conn_type": "pravega", "host": "127.0.0.1", "port": 9}
    monkeypatch.setenv("AIRFLOW_CONN_PRAVEGA_DEFAULT", json.dumps(pravega))
    return PravegaSource(f"shop/t-{secrets.token_hex(4)}", value=Registry())


def info(text: str) -> SchemaInfo:
    return SchemaInfo("Row", "Avro", text.encode())


async def polled(sensor: SchemaAvailableSensor) -> Any:
    """One poll of its trigger, as the triggerer makes it from what is stored."""
    path, arguments = sensor.trigger({}).serialize()
    module, _, name = path.rpartition(".")
    made = getattr(__import__(module, fromlist=[name]), name)(**json.loads(json.dumps(arguments)))
    try:
        return await made.ask()
    finally:
        await made.hook().aclose()


@pytest.mark.pulsar
async def test_a_topics_schema_is_waited_for_and_checked(topic, pulsar_server):
    source = PulsarSource(topic, value="auto")
    any_one = SchemaAvailableSensor(task_id="w", source=source)
    with_at = SchemaAvailableSensor(task_id="w2", source=source, version=1, columns=["at.x"])
    assert not any_one.ask({}).ready
    register(pulsar_server, topic, FIRST)
    assert any_one.ask({}).facts == {"versions": {topic: "0"}}
    found = await polled(with_at)
    assert (found.ready, found.because) == (False, f"{topic} has version 0")
    check = CheckSchemaCompatibilityOperator(task_id="c", source=source, schema=SECOND)
    assert check.execute({}) == {"compatible": True, "policy": "FULL"}
    with pytest.raises(AirflowFailException, match=r"does not fit \(.*Unable to read schema"):
        CheckSchemaCompatibilityOperator(task_id="d", source=source, schema=OTHER).execute({})
    register(pulsar_server, topic, SECOND)
    assert (await polled(with_at)).ready
    lacking = SchemaAvailableSensor(task_id="w3", source=source, columns=["at.x", "nothing"])
    assert lacking.ask({}).because == f"{topic} lacks nothing"


@pytest.fixture
def logs(capsys, caplog):
    """What is printed, and what is logged."""
    return capsys, caplog


@pytest.mark.pulsar
@pytest.mark.usefixtures("airflow_home")
def test_a_plan_and_a_first_read_say_that_the_schema_is_known(topic, pulsar_server, streams, logs, tmp_path):
    capsys, caplog = logs
    pulsar = pytest.importorskip("pulsar")
    from pulsar.schema import AvroSchema, Long, Record

    class Row(Record):  # type: ignore[misc]  # pulsar-client is not annotated
        id = Long()

    client = pulsar.Client(pulsar_server.service_url, logger=pulsar.ConsoleLogger(pulsar.LoggerLevel.Error))
    start = datetime.now(UTC) - timedelta(seconds=1)
    with closing(client):
        client.create_producer(topic, schema=AvroSchema(Row)).send(Row(id=7))
    window = f"{start.isoformat()}/{datetime.now(UTC).isoformat()}"
    read = ("read", "pulsar", topic, "--window", window, "--slack", "0", "--path", str(tmp_path / "lake"))
    note = f"The schema is known of {topic} (AVRO, version 0), but values land as bytes. --value-format auto decodes"
    streams("plan", *read[1:-2], "--output", "json")
    told = capsys.readouterr()
    assert (json.loads(told.out)["window"]["start"][:19], note in told.err) == (start.isoformat()[:19], True)
    for format_ in ("auto", "bytes"):
        streams("plan", *read[1:-2], "--value-format", format_)
        assert note not in capsys.readouterr().err
    streams(*read)
    assert len([one for one in caplog.messages if note in one]) == 1
    assert not [line for line in capsys.readouterr().err.splitlines() if line.startswith(note)], "only in the log"
    with pytest.raises(SystemExit):
        streams(*read, "--value-format", "auto")
    said = capsys.readouterr().err
    assert "values auto instead of none. Reader 'cli' lands in" in said
    assert "--full-refresh" in said
    assert "--replan" not in said, "rows of bytes have no column of decoded ones"
    streams(*read, "--value-format", "auto", "--full-refresh")
    assert ds.dataset(tmp_path / "lake").to_table()["id"].to_pylist() == [7]
    assert note not in capsys.readouterr().err


@pytest.mark.pulsar
def test_a_topics_schemas_on_the_command_line(topic, pulsar_server, streams, capsys, tmp_path):
    def rows(*arguments: str) -> Any:
        streams("schema", *arguments, "-o", "json")
        return json.loads(capsys.readouterr().out)

    streams("schema", "show", "pulsar", topic)
    assert "no schema" in capsys.readouterr().out
    register(pulsar_server, topic, FIRST)
    register(pulsar_server, topic, SECOND)
    first, second = rows("show", "pulsar", topic)
    assert (first["name"], first["version"], first["type"], first["columns"]) == (topic, "0", "AVRO", "id long")
    assert second["columns"] == "id long, at struct<x: int>"
    assert [(row["column"], row["type"]) for row in rows("show", "pulsar", topic, "--version", "1")] == [
        ("id", "long"),
        ("at", "struct"),
        ("at.x", "int"),
    ]
    changed = [{"column": name, "change": "added", "version 0": None, "version 1": kind} for name, kind in
               (("at", "struct"), ("at.x", "int"))]  # fmt: skip
    assert rows("compare", "pulsar", topic) == changed
    assert [row["change"] for row in rows("compare", "pulsar", topic, "--old", "1", "--new", "0")] == ["removed"] * 2
    streams("schema", "compare", "pulsar", topic, "--old", "1", "--new", "1")
    assert "have the same columns" in capsys.readouterr().out
    streams("schema", "export", "pulsar", topic, "--version", "0")
    assert json.loads(capsys.readouterr().out) == json.loads(FIRST)
    streams("schema", "export", "pulsar", topic, "--file", str(tmp_path / "schema.avsc"))
    assert json.loads((tmp_path / "schema.avsc").read_text()) == json.loads(SECOND)
    with pytest.raises(SystemExit):
        streams("schema", "export", "pulsar", topic, "--version", "7")
    assert f"{topic} has no version 7; it has: 0, 1" in capsys.readouterr().err


@pytest.mark.pravega
async def test_a_groups_schema_is_waited_for_and_checked(group):
    sensor = SchemaAvailableSensor(task_id="w", source=group, version=1, columns=["at.x"])
    assert "does not exist" in sensor.ask({}).because
    check = CheckSchemaCompatibilityOperator(task_id="c", source=group, schema=FIRST)
    with pytest.raises(AirflowFailException, match="does not exist"):
        check.execute({})
    hook = SchemaRegistryHook()
    assert hook.test_connection()[0]
    assert hook.create_group(group.stream, "Avro", "Backward")
    assert not hook.create_group(group.stream, "Avro")
    assert hook.add_schema(group.stream, info(FIRST)) == 0
    assert (await polled(sensor)).because == f"{group.stream} has version 0"
    assert check.execute({}) == {"compatible": True, "policy": "Backward"}
    for refused in ({}, {"check": "read"}, {"policy": "FullTransitive"}):
        with pytest.raises(AirflowFailException, match=r"does not fit by its policy \w+ \(group shop/"):
            CheckSchemaCompatibilityOperator(task_id="d", source=group, schema=OTHER, **refused).execute({})
    with pytest.raises(InvalidRequest, match="its policy forbids it"):
        hook.add_schema(group.stream, info(OTHER))
    assert CheckSchemaCompatibilityOperator(task_id="e", source=group, schema=OTHER, policy="AllowAny").execute({}) == {
        "compatible": True,
        "policy": "AllowAny",
    }
    assert hook.add_schema(group.stream, info(SECOND)) == 1
    assert (await polled(sensor)).ready
    assert [one.schema.data.decode() for one in hook.versions(group.stream)] == [FIRST, SECOND]
    assert [change.policy for change in hook.history(group.stream)] == ["Backward", "Backward"]
    assert (hook.codecs(group.stream), hook.is_valid(group.stream, info(OTHER))) == ((), False)
    assert hook.groups("shop")[group.stream.partition("/")[2]] == hook.group(group.stream)
    with pytest.raises(SourceNotFound, match="namespace 'elsewhere'"):
        hook.group("unheard-of")
    hook.close()


@pytest.mark.pravega
def test_a_groups_schemas_on_the_command_line(group, streams, capsys):
    hook = SchemaRegistryHook()
    hook.create_group(group.stream, "Avro")
    hook.add_schema(group.stream, info(FIRST))
    hook.close()
    streams("schema", "show", "pravega", group.stream, "--registry", "registry_default", "-o", "json")
    (row,) = json.loads(capsys.readouterr().out)
    assert (row["type"], row["version"], row["columns"]) == ("Avro", "*", "id long")
    namespace, _, name = group.stream.partition("/")
    arguments = ["pravega", "s/x", "--registry", "registry_default", "--namespace", namespace, "--group", name]
    streams("schema", "export", *arguments)
    assert capsys.readouterr().out.strip() == FIRST
    with pytest.raises(SystemExit):
        streams("schema", "show", "pravega", group.stream)
    assert "say which registry" in capsys.readouterr().err


@pytest.mark.pravega
async def test_only_planning_is_told_of_the_registry(group, caplog):
    hook = hook_for(group)
    shared, told = hook.options(), hook.planning_options()
    assert not [name for name in shared if "registry" in name]
    assert SECRET not in shared.values()
    assert (told["registry_username"], told["registry_password"]) == ("me", SECRET)
    assert await hook.aplanning_options() == told
    assert await hook.aoptions() == shared
    system = hook.system()
    assert SECRET not in f"{system!r} {system.endpoint!r} {hook!r}"
    assert hook_for(PravegaSource("s/x")).planning_options() == hook_for(PravegaSource("s/x")).options()
    with pytest.raises(SourceNotFound) as caught:
        system.schemas(group)
    assert SECRET not in f"{caught.value} {caplog.text}"


@pytest.mark.pravega
def test_a_registry_that_is_not_allowed_is_said_so(group, monkeypatch):
    monkeypatch.setenv(
        "AIRFLOW_CONN_OTHER", json.dumps({"conn_type": "schema_registry", "host": "127.0.0.1", "port": 9})
    )
    works, said = SchemaRegistryHook("other").test_connection()
    assert not works
    assert "127.0.0.1:9 is not available" in said
    with pytest.raises(InvalidRequest, match="no namespace"):
        SchemaRegistryHook("other").name("group")
    with pytest.raises(InvalidSchema, match="is not written"):
        Registry(codecs={"zstd": "rm -rf"})
    with pytest.raises(InvalidRequest, match="keeps no schemas"):
        hook_for(PravegaSource("s/x")).schemas(PravegaSource("s/x"))
