"""Each argument, and each field within one, is rendered, or refuses a template when the DAG is parsed."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from airflow.sdk import DAG, task, task_group

from airflow_provider_streams import (
    AutoCdc,
    DeltaSink,
    IcebergSink,
    ParquetSink,
    PravegaSource,
    PulsarSource,
    ReadWindowOperator,
    Window,
)
from airflow_provider_streams.errors import InvalidRequest
from airflow_provider_streams.lake.registry import FORMATS
from airflow_provider_streams.model.schema.payload import PAYLOADS, Json
from airflow_provider_streams.model.sinks.custom_sink import CustomSink
from airflow_provider_streams.model.sinks.table_sink import TableSink
from airflow_provider_streams.model.window.basis import Chained, Cuts, EventTime, PublishTime, RecordedCuts
from airflow_provider_streams.operators.pulsar import PulsarCreateTopicOperator
from airflow_provider_streams.systems.registry import SYSTEMS
from airflow_provider_streams.template_fields import KINDS
from airflow_provider_streams.triggers.cuts import RecordCutsTrigger
from airflow_provider_streams.triggers.new_windows import NewWindowsTrigger
from airflow_provider_streams.triggers.pravega_unread import PravegaUnreadTrigger
from airflow_provider_streams.triggers.pulsar_messages import PulsarMessagesTrigger
from tests.unit.operators.test_parameters import CLASSES, own

TEMPLATE = "{{ params.x }}"
TEN = "2026-11-20T10:00:00Z"
WINDOW = Window(datetime(2026, 11, 20, 10, tzinfo=UTC), datetime(2026, 11, 20, 11, tzinfo=UTC))
HOUR = timedelta(hours=1)

GIVEN: dict[str, Any] = {
    "source": PulsarSource("t"),
    "sources": PulsarSource("t"),
    "sink": IcebergSink("shop.orders"),
    "topic": "t",
    "stream": "shop/t",
    "reader": "r",
    "subscription": "s",
    "schema": "{}",
    "start": TEN,
    "end": "2026-11-20T12:00:00Z",
    "moment": TEN,
    "until": TEN,
    "window_length": HOUR,
    "max_delay": HOUR,
    "cut": "latest",
    "bytes": 1,
    "partitions": 1,
}
"""What a class demands, whatever is tried."""
OF_PRAVEGA = {"source": PravegaSource("shop/t"), "segments": ["0.#epoch.0"]}
MORE: dict[str, dict[str, Any]] = {
    "PravegaRollEpochOperator": OF_PRAVEGA,
    "PravegaSegmentSealedSensor": OF_PRAVEGA,
    "PravegaScaleStreamOperator": {"segments": 2},
    "PulsarBacklogSensor": {"entries": 1},
}
INSTEAD = {"split": "segments", "merge": "segments", "source": "topic"}
"""An argument that takes the place of another one."""
RENDERED: dict[str, Any] = {"columns": ["key"], "at": "earliest", "window": str(WINDOW)}
"""What a template gives for an argument that cannot be any text."""
PUBLIC = [cls for cls in CLASSES if not cls.__name__.startswith("_") and not inspect.isabstract(cls)]


def arguments(cls: type, without: str = "") -> dict[str, Any]:
    needed = {one.name for one in inspect.signature(cls.__init__).parameters.values() if one.default is one.empty} & {
        *GIVEN,
        *MORE.get(cls.__name__, {}),
    }
    named = {"topic", "stream"} & own(cls)
    known = {**GIVEN, **MORE.get(cls.__name__, {})}
    chosen = {*needed, *named, *({"segments", "entries"} & set(known) & own(cls))} & own(cls)
    if "sink" in own(cls):
        chosen.add("sink")
    return {name: known[name] for name in chosen if name not in {without, INSTEAD.get(without)}}


def rendered(task: Any, **params: Any) -> Any:
    with DAG("templates", schedule=None, start_date=WINDOW.start) as dag:
        pass
    task.render_template_fields({"params": params}, dag.get_template_env())
    return task


def built(cls: type, name: str, value: Any) -> Any:
    return cls(task_id="task", **{**arguments(cls, without=name), name: value})


def all_arguments() -> Iterator[Any]:
    for cls in PUBLIC:
        yield from (pytest.param(cls, name, id=f"{cls.__name__}.{name}") for name in sorted(own(cls)))


@pytest.mark.parametrize("cls", PUBLIC, ids=lambda cls: cls.__name__)
def test_each_class_can_be_made_here(cls):
    cls(task_id="task", **arguments(cls))
    assert set(cls.template_fields) <= set(KINDS), "say in template_fields what the new argument is"


@pytest.mark.parametrize(("cls", "name"), list(all_arguments()))
def test_an_argument_is_rendered_or_refuses_a_template(cls, name):
    if name in cls.template_fields and KINDS[name].words.startswith("a source"):
        return  # their fields have a test each, below
    if name in cls.template_fields:
        value = RENDERED.get(name, GIVEN.get(name, "text"))
        written = {"conf": {"spark.x": TEMPLATE}} if name == "spark" else TEMPLATE
        task = rendered(built(cls, name, written), x=value if isinstance(value, str) else ",".join(value))
        found = getattr(task, name)
        assert found in (value, ",".join(value), {"conf": {"spark.x": value}})
        return
    with pytest.raises(InvalidRequest, match=rf"{cls.__name__}: {name} is not rendered"):
        built(cls, name, TEMPLATE)


SOURCES = {"pulsar": PulsarSource, "pravega": PravegaSource}
SINKS: list[type] = [ParquetSink, DeltaSink, IcebergSink, TableSink, CustomSink]
NEEDED: dict[type, dict[str, Any]] = {
    PulsarSource: {"topics": "t"},
    PravegaSource: {"stream": "shop/t"},
    ParquetSink: {"path": "/lake/t"},
    DeltaSink: {"path": "/lake/t"},
    IcebergSink: {"table": "shop.t"},
    TableSink: {"table": "prod.shop.t"},
    CustomSink: {"kind": "shop:Writer", "target": "/lake/t"},
    AutoCdc: {"keys": ["id"]},
    PAYLOADS["json"]: {"columns": "id long"},
    PAYLOADS["avro"]: {"schema": '"long"'},
    PAYLOADS["protobuf"]: {"descriptor": "AAAA", "message": "shop.Order"},
}
SAMPLE: dict[str, str] = {
    "topics": "orders",
    "pattern": "shop/orders/o-.*",
    "stream": "shop/orders",
    "scope": "shop",
    "tags": "eu",
    "conn_id": "other",
    "keys": "k1",
    "routing_keys": "k1",
    "path": "/lake/orders",
    "table": "prod.shop.orders",
    "catalog": "prod",
    "compression": "snappy",
    "target": "/lake/orders",
    "options": "text",
    "column_list": "id",
    "except_column_list": "name",
    "track_history_column_list": "id",
    "apply_as_deletes": "gone",
    "apply_as_truncates": "gone",
}
"""A value of each field that is rendered: name yours here, or refuse templates in it."""
SEVERAL = {
    *("topics", "stream", "tags", "keys", "routing_keys", "partitions", "key_hash_ranges", "type"),
    *("column_list", "except_column_list", "track_history_column_list"),
}
"""Fields that take lists."""
EXCLUDES = {
    "pattern": {"topics", "stream"},
    "scope": {"topics", "stream"},
    "tags": {"stream"},
}
ALSO: dict[str, dict[str, Any]] = {"tags": {"scope": "shop"}, "track_history_column_list": {"stored_as_scd_type": 2}}


def made(cls: type, name: str, value: Any) -> Any:
    base = {key: one for key, one in NEEDED.get(cls, {}).items() if key not in EXCLUDES.get(name, set())}
    return cls(**{**base, **ALSO.get(name, {}), name: value})


def spellings(name: str, text: str) -> list[Any]:
    """A text, or what may hold texts."""
    if name.startswith("apply_as"):
        return [f"op = '{text}'", text]
    if name in ("options", "codecs"):
        return [{"name": text}, text]
    return [text, [text]] if name in SEVERAL else [text]


def landing(value: Any) -> ReadWindowOperator:
    """A task with a value in the place that it is made for."""
    how: dict[str, Any] = {"source": PulsarSource("t"), "sink": None}
    if isinstance(value, AutoCdc):
        how["sink"] = IcebergSink("shop.t", apply=value)
    elif isinstance(value, tuple(PAYLOADS.values())):
        holder = PravegaSource("shop/t", value=value) if value.format == "registry" else PulsarSource("t", value=value)
        how["source"] = holder
    elif isinstance(value, PublishTime | EventTime | Cuts | Chained | RecordedCuts):
        how["basis"] = value
        how["source"] = PravegaSource("shop/t") if isinstance(value, RecordedCuts) else PulsarSource("t")
    else:
        how["source" if hasattr(value, "system") else "sink"] = value
    return ReadWindowOperator(task_id="read", **how)


BASES = (PublishTime, RecordedCuts, EventTime, Chained, Cuts)
VALUES: list[type] = [*SOURCES.values(), *SINKS, AutoCdc, *PAYLOADS.values(), *BASES]


def fields_of(cls: type) -> list[str]:
    return [one.name for one in inspect.signature(cls).parameters.values()]


def fields_of_values() -> Iterator[Any]:
    for cls in VALUES:
        yield from (pytest.param(cls, name, id=f"{cls.__name__}.{name}") for name in fields_of(cls))


def is_rendered(cls: type, name: str) -> bool:
    """Whether a task takes a template in a field; of any other field, the DAG's file fails."""
    for template in spellings(name, TEMPLATE):
        try:
            landing(made(cls, name, template))
        except InvalidRequest:
            continue
        return True
    return False


@pytest.mark.parametrize(("cls", "name"), list(fields_of_values()))
def test_a_field_is_rendered_or_refuses_a_template(cls, name):
    tried = 0
    for template, plain in zip(spellings(name, TEMPLATE), spellings(name, SAMPLE.get(name, "")), strict=True):
        try:
            task = landing(made(cls, name, template))
        except InvalidRequest as error:
            assert name in str(error), "it names the field"  # noqa: PT017 - it may also be rendered
            continue
        tried += 1
        assert name in SAMPLE, f"{cls.__name__}.{name} is neither rendered nor refuses a template"
        assert landing(made(cls, name, plain)).sink == rendered(task, x=SAMPLE[name]).sink
        assert landing(made(cls, name, plain)).source == task.source
    assert tried or name not in SAMPLE or cls in PAYLOADS.values() or name in ("conn_id", "keys")


def test_every_system_and_every_format_is_tried():
    assert set(SYSTEMS) - set(SOURCES) <= {"fake", "files"}
    kinds = {sink.kind for sink in SINKS if isinstance(getattr(sink, "kind", None), str)}
    assert set(FORMATS) <= kinds


@pytest.mark.parametrize(
    ("trigger", "how"),
    [
        (NewWindowsTrigger, {"source": PulsarSource(TEMPLATE), "window_length": HOUR}),
        (NewWindowsTrigger, {"source": PulsarSource("t"), "window_length": HOUR, "reader": TEMPLATE}),
        (PulsarMessagesTrigger, {"topic": TEMPLATE, "subscription": "s"}),
        (PulsarMessagesTrigger, {"topic": "t", "subscription": TEMPLATE}),
        (PulsarMessagesTrigger, {"source": PulsarSource("t", conn_id=TEMPLATE), "subscription": "s"}),
        (PravegaUnreadTrigger, {"stream": "shop/t", "reader": TEMPLATE}),
        (PravegaUnreadTrigger, {"source": PravegaSource(TEMPLATE), "reader": "r"}),
        (RecordCutsTrigger, {"sources": [PulsarSource(TEMPLATE)]}),
    ],
)
def test_a_watcher_renders_nothing_and_refuses_templates(trigger, how):
    with pytest.raises(InvalidRequest, match="is not rendered, and has a template"):
        trigger(**how)


def test_a_source_whose_name_alone_counts_gives_name_and_connection_to_be_rendered():
    task = PulsarCreateTopicOperator(task_id="make", source=PulsarSource(f"shop/orders/{TEMPLATE}", conn_id=TEMPLATE))
    assert (rendered(task, x="eu").topic, task.conn_id) == ("shop/orders/eu", "eu")
    with pytest.raises(InvalidRequest, match=r"source\.keys is not rendered"):
        PulsarCreateTopicOperator(task_id="make", source=PulsarSource("t", keys=[TEMPLATE]))


def test_a_name_in_a_mapping_is_not_rendered():
    with pytest.raises(InvalidRequest, match=r"sink\.options\['\{\{ params\.x \}\}'\]"):
        ReadWindowOperator(
            task_id="read", source=PulsarSource("t"), sink=CustomSink("shop:Writer", "/lake/t", {TEMPLATE: "text"})
        )


def test_a_schema_with_a_template_is_refused_by_its_field():
    with pytest.raises(InvalidRequest, match=r"ReadWindowOperator: source\.value\.columns is not rendered"):
        ReadWindowOperator(task_id="read", sink=None, source=PulsarSource("t", value=Json("id long from `{{ x }}`")))


@pytest.mark.parametrize("argument", ["window_length", "dry_run"])
def test_another_tasks_output_is_refused_where_it_would_stay_one(argument):
    with DAG("outputs", schedule=None, start_date=WINDOW.start):

        @task
        def pick() -> str:
            return "text"

        given = {"source": PulsarSource("t"), "sink": None, argument: pick()}
        with pytest.raises(InvalidRequest, match=rf"{argument} is not rendered, and has another task's output"):
            ReadWindowOperator(task_id="read", **given)


@pytest.mark.parametrize(("cls", "name"), list(fields_of_values()))
def test_another_tasks_output_is_refused_by_each_field_of_a_value(cls, name):
    with DAG("outputs", schedule=None, start_date=WINDOW.start):

        @task
        def pick() -> str:
            return "text"

        output = pick()
        for given in (output, [output], {"name": output}):
            message = rf"^{cls.__name__}: {name} has another task's output, .*{{{{ task_instance\.xcom_pull\(.*'pick'"
            with pytest.raises(InvalidRequest, match=message):
                made(cls, name, given)


def test_a_replaced_field_that_is_another_tasks_output_is_refused_by_its_name():
    with DAG("outputs", schedule=None, start_date=WINDOW.start):

        @task
        def pick() -> str:
            return "shop/orders"

        with pytest.raises(InvalidRequest, match="PravegaSource: streams has another task's output"):
            replace(PravegaSource("shop/orders"), streams=pick())


def test_the_argument_of_a_mapped_group_is_refused_by_the_field_that_has_it():
    with DAG("outputs", schedule=None, start_date=WINDOW.start):

        @task_group
        def each(topic: Any) -> None:
            with pytest.raises(InvalidRequest, match=r"PulsarSource: topics has another task's output, .*xcom_pull"):
                PulsarSource(topic)

        each.expand(topic=["a", "b"])


def test_an_unknown_argument_is_pythons_own_error():
    with pytest.raises(TypeError, match="topic"):
        PulsarSource(topic="t")
