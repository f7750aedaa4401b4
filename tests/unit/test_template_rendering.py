"""A rendered value is taken as it was written, in DAGs that render to texts and in those that render native objects."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from airflow.sdk import DAG

from airflow_provider_streams import CustomSink, IcebergSink, PravegaSource, PulsarSource, ReadWindowOperator, Window
from airflow_provider_streams.errors import InvalidRequest
from airflow_provider_streams.operators.backfill import BackfillWindowsOperator
from airflow_provider_streams.operators.cuts import RecordCutsOperator
from airflow_provider_streams.operators.holds import HoldRetentionOperator, MoveHoldOperator
from airflow_provider_streams.operators.maintenance import CompactTableOperator
from airflow_provider_streams.operators.pravega import PravegaCreateStreamOperator, PravegaTruncateStreamOperator
from airflow_provider_streams.operators.schemas import CheckSchemaCompatibilityOperator
from airflow_provider_streams.sensors.cuts import CutAvailableSensor
from airflow_provider_streams.sensors.schemas import SchemaAvailableSensor

TEN = datetime(2026, 11, 20, 10, tzinfo=UTC)
WINDOW = Window(TEN, TEN + timedelta(hours=1))
X = "{{ params.x }}"
BOTH = pytest.mark.parametrize("native", [False, True], ids=["texts", "native"])


def rendered(task: Any, x: object, *, native: bool) -> Any:
    dag = DAG("templates", schedule=None, start_date=TEN, render_template_as_native_obj=native)
    task.render_template_fields({"params": {"x": x, "topics": ["a", "b"]}}, dag.get_template_env())
    return task


def read(**arguments: Any) -> ReadWindowOperator:
    return ReadWindowOperator(**{"task_id": "read", "source": PulsarSource("t"), "sink": None, **arguments})


@BOTH
@pytest.mark.parametrize(
    ("x", "text"),
    [
        ("2026", "2026"),
        (2026, "2026"),
        ("007", "007"),
        ("12e5", "12e5"),
        ("1_000", "1_000"),
        ("True", "True"),
        ("'quoted'", "'quoted'"),
        ("[1]", "[1]"),
        ("20261120", "20261120"),
    ],
)
def test_texts_stay_texts(x, text, native):
    task = rendered(read(reader=X, source=PulsarSource(X, keys=[X], conn_id=X)), x, native=native)
    assert task.reader == text
    assert (task.source.keys, task.source.conn_id) == ((text,), text)
    assert (
        rendered(
            HoldRetentionOperator(task_id="hold", source=PulsarSource("t"), reader="r", name=X), x, native=native
        ).hold
        == text
    )
    assert rendered(PravegaCreateStreamOperator(task_id="make", stream="s/t", tags=[X]), x, native=native).tags == [
        text
    ]
    assert rendered(read(spark={"conf": {"spark.x": X}}), x, native=native).spark == {
        "conf": {"spark.x": x if native else text}
    }
    sink = rendered(read(sink=CustomSink("shop:Writer", "/lake/t", {"x": X})), x, native=native).sink
    assert sink.options == {"x": text}


@BOTH
def test_texts_without_templates_stay_as_they_are(native):
    spark = {"driver_memory": "4g", "conf": {"spark.x": "12e5", "spark.y": "1_000", "spark.z": "None"}}
    task = rendered(read(reader="2026", spark=spark, columns="key"), 1, native=native)
    assert (task.reader, task.spark, task.columns) == ("2026", spark, "key")
    schema = '{"type": "long"}'
    check = CheckSchemaCompatibilityOperator(task_id="check", source=PulsarSource("t"), schema=schema)
    assert rendered(check, 1, native=native).schema == schema


@BOTH
@pytest.mark.parametrize("x", [None, "", "  ", "None"])
@pytest.mark.parametrize(
    ("name", "task"),
    [
        ("reader", lambda: read(reader=X)),
        ("spark_conn_id", lambda: read(spark_conn_id=X)),
        ("transform", lambda: read(sink=IcebergSink("shop.t"), transform=X)),
        ("columns", lambda: read(columns=X)),
        ("window", lambda: read(window=X)),
        (
            "select",
            lambda: BackfillWindowsOperator(
                task_id="f", source=PulsarSource("t"), sink=None, start=TEN, end=TEN, select=X
            ),
        ),
        ("name", lambda: HoldRetentionOperator(task_id="hold", source=PulsarSource("t"), reader="r", name=X)),
        ("at", lambda: MoveHoldOperator(task_id="move", source=PulsarSource("t"), reader="r", at=X)),
        ("recorder", lambda: RecordCutsOperator(task_id="record", sources=PulsarSource("t"), recorder=X)),
        ("moment", lambda: CutAvailableSensor(task_id="cut", source=PulsarSource("t"), moment=X)),
        ("columns", lambda: SchemaAvailableSensor(task_id="schema", source=PulsarSource("t"), columns=X)),
    ],
)
def test_what_renders_to_nothing_is_no_default(name, task, x, native):
    with pytest.raises(InvalidRequest, match=rf"\b{name}\b(: the template .* gave no value| is .*got )"):
        rendered(task(), x, native=native)


@BOTH
@pytest.mark.parametrize("x", [None, "None"])
def test_a_source_or_a_sink_has_no_field_of_nothing(x, native):
    for task, field in (
        (read(source=PulsarSource(["a", X])), r"source: PulsarSource\.topics"),
        (read(source=PravegaSource("s/t", routing_keys=[X])), r"source: PravegaSource\.routing_keys"),
        (CompactTableOperator(task_id="c", sink=IcebergSink("shop.t", catalog=X)), r"sink: IcebergSink\.catalog"),
        (read(spark={"driver_memory": X}), "spark"),
    ):
        with pytest.raises(InvalidRequest, match=rf"{field}: the template '\{{\{{ params\.x \}}\}}' gave no value"):
            rendered(task, x, native=native)


@pytest.mark.parametrize(
    ("name", "x"),
    [
        ("reader", {"a": 1}),
        ("reader", ["a"]),
        ("window", ["a", "b"]),
        ("window", {"start": "a"}),
        ("columns", {"a": 1}),
    ],
)
def test_a_native_object_of_another_kind_is_refused_by_the_arguments_name(name, x):
    with pytest.raises(InvalidRequest, match=rf"ReadWindowOperator: {name} is .*got a (dict|list)"):
        rendered(read(**{name: X}), x, native=True)


@pytest.mark.parametrize("x", [{"a": 1}, b"a"])
def test_a_native_object_within_a_source_is_refused_by_its_field(x):
    with pytest.raises(InvalidRequest, match=r"PulsarSource\.topics is a text, or in a list several"):
        rendered(read(source=PulsarSource(X)), x, native=True)


def test_native_objects_are_windows_times_and_lists():
    assert rendered(read(window=X), WINDOW.to_json(), native=True).window == WINDOW
    assert rendered(read(window=X), WINDOW, native=True).window == WINDOW
    assert rendered(read(columns=X), ["key", "value"], native=True).columns == ["key", "value"]
    assert rendered(read(spark=X), {"driver_memory": "4g"}, native=True).spark == {"driver_memory": "4g"}
    assert rendered(read(source=PulsarSource("{{ params.topics }}")), 1, native=True).source == PulsarSource(["a", "b"])
    assert rendered(CutAvailableSensor(task_id="c", source=PulsarSource("t"), moment=X), TEN, native=True).moment == TEN
    at = HoldRetentionOperator(task_id="hold", source=PulsarSource("t"), reader="r", at=X)
    assert datetime.fromisoformat(rendered(at, TEN, native=True).at) == TEN
    cut = {"s/t/0.#epoch.0": "12"}
    truncate = PravegaTruncateStreamOperator(task_id="cut", stream="s/t", cut="{{ params.x | tojson }}")
    assert rendered(truncate, cut, native=True).cut == '{"s/t/0.#epoch.0": "12"}'
    assert type(truncate.cut) is str, "no text that escapes what is added to it"
    assert rendered(PravegaTruncateStreamOperator(task_id="cut", stream="s/t", cut=X), cut, native=True).cut == cut


@BOTH
def test_a_template_of_several_parts_is_a_text(native):
    assert rendered(read(reader="{{ params.x }}{{ params.x }}"), 20, native=native).reader == "2020"
    assert rendered(read(columns="{{ params.x }},value"), "key", native=native).columns == "key,value"


@BOTH
def test_columns_of_a_sensor_may_be_one_template(native):
    sensor = SchemaAvailableSensor(task_id="schema", source=PulsarSource("t"), columns=X)
    assert rendered(sensor, "id,name", native=native).condition().columns == ("id", "name")


@BOTH
def test_a_text_with_braces_of_its_own_is_written_as_an_expression(native):
    task = rendered(read(source=PulsarSource("t", keys=["{{ '{{' }}a}}"])), 1, native=native)
    assert task.source.keys == ("{{a}}",)
