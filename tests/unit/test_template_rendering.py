"""A rendered value is taken as it was written, in DAGs that render to texts and in those that render native objects."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from airflow.sdk import DAG
from jinja2 import StrictUndefined, Undefined

from airflow_provider_streams import (
    AutoCdc,
    CustomSink,
    DeltaSink,
    IcebergSink,
    ParquetSink,
    PravegaSource,
    PulsarSource,
    ReadWindowOperator,
    Window,
)
from airflow_provider_streams.errors import InvalidRequest
from airflow_provider_streams.operators.backfill import BackfillWindowsOperator
from airflow_provider_streams.operators.cuts import RecordCutsOperator
from airflow_provider_streams.operators.holds import HoldRetentionOperator, MoveHoldOperator
from airflow_provider_streams.operators.maintenance import CompactTableOperator
from airflow_provider_streams.operators.pravega import PravegaCreateStreamOperator, PravegaTruncateStreamOperator
from airflow_provider_streams.operators.pulsar import PulsarCompactTopicOperator
from airflow_provider_streams.operators.schemas import CheckSchemaCompatibilityOperator
from airflow_provider_streams.sensors.cuts import CutAvailableSensor
from airflow_provider_streams.sensors.pulsar import PulsarBacklogSensor
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
@pytest.mark.parametrize("x", ["{{ ds }}", "orders_{% if x %}"])
@pytest.mark.parametrize(
    ("name", "task"),
    [
        ("reader", lambda: read(reader=X)),
        ("spark_conn_id", lambda: read(spark_conn_id=X)),
        ("name", lambda: HoldRetentionOperator(task_id="hold", source=PulsarSource("t"), reader="r", name=X)),
        ("recorder", lambda: RecordCutsOperator(task_id="record", sources=PulsarSource("t"), recorder=X)),
        ("subscription", lambda: PulsarBacklogSensor(task_id="b", topic="t", subscription=X, entries=1)),
        (
            "schema_name",
            lambda: CheckSchemaCompatibilityOperator(
                task_id="check", source=PulsarSource("t"), schema="{}", schema_type="JSON", schema_name=X
            ),
        ),
    ],
)
def test_a_name_that_is_still_a_template_is_refused_by_its_field(name, task, x, native):
    with pytest.raises(InvalidRequest, match=rf"\b{name} is a text without"):
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


LONGER = [
    (r"sink: ParquetSink\.path", lambda: read(sink=ParquetSink("/lake/{{ params.x }}/t"))),
    (r"sink: IcebergSink\.table", lambda: read(sink=IcebergSink("shop.orders_{{ params.x }}"))),
    (r"sink: CustomSink\.options\.a", lambda: read(sink=CustomSink("shop:Writer", "/t", {"a": "b {{ params.x }}"}))),
    (r"source: PulsarSource\.topics", lambda: read(source=PulsarSource(["a", "t-{{ params.x }}"]))),
    (r"source: PravegaSource\.scope", lambda: read(source=PravegaSource(scope="s{{ params.x }}"))),
    ("reader", lambda: read(reader="r {{ params.x }}")),
    ("transform", lambda: read(sink=IcebergSink("s.t"), transform="SELECT {{ params.x }} FROM window")),
    ("spark", lambda: read(spark={"conf": {"spark.x": "a{{ params.x }}"}})),
    ("stream", lambda: PravegaTruncateStreamOperator(task_id="t", stream="s/{{ params.x }}", cut="latest")),
]


@BOTH
@pytest.mark.parametrize(("field", "task"), LONGER)
@pytest.mark.parametrize(
    ("params", "undefined"), [({"x": None}, StrictUndefined), ({}, StrictUndefined), ({}, Undefined)]
)
def test_a_longer_text_has_no_expression_of_nothing(field, task, params, undefined, native):
    dag = DAG("d", schedule=None, start_date=TEN, render_template_as_native_obj=native, template_undefined=undefined)
    with pytest.raises(InvalidRequest, match=rf"Operator: {field}: the template '.*' gave no value"):
        task().render_template_fields({"params": params}, dag.get_template_env())


@BOTH
def test_a_text_may_go_without_an_expression_that_says_so(native):
    task = rendered(
        read(reader="r{{ params.x or '' }}", source=PulsarSource("t{{ params.x or '' }}")), None, native=native
    )
    assert (task.reader, task.source) == ("r", PulsarSource("t"))


@BOTH
def test_a_dags_own_finalize_says_what_nothing_is(native):
    dag = DAG(
        "d",
        schedule=None,
        start_date=TEN,
        render_template_as_native_obj=native,
        jinja_environment_kwargs={"finalize": lambda value: "none" if value is None else value},
    )
    task = read(reader="r-{{ params.x }}")
    task.render_template_fields({"params": {"x": None}}, dag.get_template_env())
    assert task.reader == "r-none"


@BOTH
@pytest.mark.parametrize(
    "sink",
    [
        lambda text: ParquetSink(f"/lake/{text}"),
        lambda text: ParquetSink(f"/lake/{text}/orders"),
        lambda text: ParquetSink(f"file:///lake/{text}/orders"),
        lambda text: ParquetSink(f"file:///{text}/orders"),
        lambda text: DeltaSink(f"s3://lake/orders/{text}"),
        lambda text: DeltaSink(f"/{text}/orders"),
        lambda text: CustomSink("shop:Writer", f"https://lake/{text}/orders"),
    ],
)
def test_a_path_has_no_folder_without_a_name(sink, native):
    assert rendered(read(sink=sink(X)), "a", native=native).sink == sink("a")
    with pytest.raises(InvalidRequest, match=r"sink: \w+Sink\.(path|target): .* a folder without a name"):
        rendered(read(sink=sink("{{ params.x }}")), "", native=native)


@BOTH
@pytest.mark.parametrize("x", ["", " "])
@pytest.mark.parametrize(
    ("task", "field"),
    [
        (lambda: read(source=PulsarSource("t", conn_id=X)), r"source: PulsarSource\.conn_id"),
        (lambda: read(source=PulsarSource(pattern=X)), r"source: PulsarSource\.pattern"),
        (lambda: read(source=PulsarSource("t", keys=["a", X])), r"source: PulsarSource\.keys"),
        (lambda: read(sink=IcebergSink("shop.t", catalog=X)), r"sink: IcebergSink\.catalog"),
        (lambda: read(sink=CustomSink("shop:Writer", "/t", {"a": X})), r"sink: CustomSink\.options\.a"),
    ],
)
def test_a_field_of_a_source_or_a_sink_is_no_empty_text(task, field, x, native):
    with pytest.raises(InvalidRequest, match=rf"{field}: its template gave an empty text"):
        rendered(task(), x, native=native)


@pytest.mark.parametrize("x", [[], (), {}, set()])
@pytest.mark.parametrize(
    ("task", "field"),
    [
        (lambda: read(source=PulsarSource("t", keys=X)), r"source: PulsarSource\.keys"),
        (lambda: read(source=PulsarSource("t", keys=["a", X])), r"source: PulsarSource\.keys"),
        (lambda: read(source=PulsarSource(["t", X])), r"source: PulsarSource\.topics"),
        (lambda: read(source=PulsarSource("t", conn_id=X)), r"source: PulsarSource\.conn_id"),
        (lambda: read(source=PravegaSource(scope="s", tags=X)), r"source: PravegaSource\.tags"),
        (lambda: read(source=PravegaSource("s/t", routing_keys=X)), r"source: PravegaSource\.routing_keys"),
        (lambda: read(sink=IcebergSink("shop.t", conn_id=X)), r"sink: IcebergSink\.conn_id"),
        (lambda: read(sink=IcebergSink("shop.t", catalog=X)), r"sink: IcebergSink\.catalog"),
        (lambda: read(sink=IcebergSink("shop.t", apply=AutoCdc([X]))), r"sink: IcebergSink\.apply\.keys"),
    ],
)
def test_a_field_of_a_source_or_a_sink_is_no_empty_list(task, field, x):
    with pytest.raises(
        InvalidRequest, match=rf"{field}( is a text, .*|: its template) gave an? (empty )?(list|tuple|di|s)"
    ):
        rendered(task(), x, native=True)


@pytest.mark.parametrize(
    ("task", "field"),
    [
        (lambda: read(source=PulsarSource("t", conn_id=X)), "PulsarSource: conn_id"),
        (lambda: read(source=PulsarSource(pattern=X)), "PulsarSource: pattern"),
        (lambda: read(source=PravegaSource(scope=X)), "PravegaSource: scope"),
        (lambda: read(sink=ParquetSink(X)), "ParquetSink: path"),
        (lambda: read(sink=IcebergSink("shop.t", catalog=X)), "IcebergSink: catalog"),
    ],
)
def test_a_field_of_one_text_is_no_list(task, field):
    with pytest.raises(InvalidRequest, match=f"{field} is a text, not a value of type list"):
        rendered(task(), ["a"], native=True)


@BOTH
@pytest.mark.parametrize("x", ["rel/{{ y }}", "{% if y %}a"])
@pytest.mark.parametrize(
    ("task", "field"),
    [
        (lambda: read(sink=ParquetSink(X)), r"sink: ParquetSink\.path"),
        (lambda: read(sink=IcebergSink(X)), r"sink: IcebergSink\.table"),
        (lambda: read(sink=IcebergSink("shop.t", apply=AutoCdc([X]))), r"sink: IcebergSink\.apply\.keys"),
        (lambda: read(source=PulsarSource(["a", X])), r"source: PulsarSource\.topics"),
        (lambda: read(source=PravegaSource(scope=X)), r"source: PravegaSource\.scope"),
    ],
)
def test_a_template_gives_no_other_template(task, field, x, native):
    with pytest.raises(InvalidRequest, match=rf"{field}: its template gave a text that has a template itself"):
        rendered(task(), x, native=native)


@BOTH
@pytest.mark.parametrize(
    ("task", "name"),
    [
        (lambda: PravegaCreateStreamOperator(task_id="t", stream=X), "stream"),
        (lambda: PravegaCreateStreamOperator(task_id="t", stream="s/t", conn_id=X), "conn_id"),
        (lambda: PulsarCompactTopicOperator(task_id="t", topic=X), "topic"),
    ],
)
def test_the_name_of_a_topic_or_a_stream_is_no_other_template(task, name, native):
    with pytest.raises(InvalidRequest, match=rf"Operator: {name} is a text without .*, got 's/{{{{ y }}}}'"):
        rendered(task(), "s/{{ y }}", native=native)


class Lake(ParquetSink):
    """A sink of a user, with a constructor of its own."""

    def __init__(self, name: str) -> None:
        super().__init__(f"/lake/{name}")


@BOTH
def test_a_subclass_with_other_arguments_than_its_fields_holds_no_templates(native):
    assert rendered(read(sink=Lake("orders")), "a", native=native).sink.path == "/lake/orders"
    with pytest.raises(InvalidRequest, match=r"Lake cannot be made from its rendered fields: .*holds no templates"):
        rendered(read(sink=Lake(X)), "a", native=native)


@BOTH
@pytest.mark.parametrize("option", ["apply_as_deletes", "apply_as_truncates"])
@pytest.mark.parametrize("text", [X, "{{ params.x }} or gone", "not ({% if 1 %}{{ params.x }}{% endif %})"])
def test_a_condition_may_be_a_template(option, text, native):
    def made(written: str) -> ReadWindowOperator:
        return read(sink=IcebergSink("s.t", apply=AutoCdc(["id"], **{option: written})))

    found = rendered(made(text), "op = 'D'", native=native).sink.apply
    assert found in [AutoCdc(["id"], **{option: one}) for one in ("op = 'D'", "op = 'D' or gone", "not (op = 'D')")]
    for wrong in ("op = ", "{{ y }}"):
        with pytest.raises(InvalidRequest, match=option):
            rendered(made(text), wrong, native=native)
    with pytest.raises(InvalidRequest, match=f"{option}: "):
        made("op = ")


LISTS = ["{{ ['a', 'b'] }}", "{{ ('a', 'b') }}", "{{ params.topics }}", "{% set x = ['a', 'b'] %}{{ x }}"]


@pytest.mark.parametrize("text", LISTS[:3])
def test_a_list_written_in_a_template_is_a_list_in_a_native_dag(text):
    task = rendered(read(source=PulsarSource(text, keys=["c", text]), columns=text), 1, native=True)
    assert task.source == PulsarSource(["a", "b"], keys=["c", "a", "b"])
    assert list(task.columns) == ["a", "b"]


@pytest.mark.parametrize("text", LISTS)
@pytest.mark.parametrize(
    ("argument", "task"),
    [
        (r"source: PulsarSource\.topics", lambda text: read(source=PulsarSource(text))),
        (r"source: PulsarSource\.keys", lambda text: read(source=PulsarSource("t", keys=[text]))),
        ("columns", lambda text: read(columns=text)),
        ("reader", lambda text: read(reader=text)),
        ("window", lambda text: read(window=text)),
        ("tags", lambda text: PravegaCreateStreamOperator(task_id="make", stream="s/t", tags=[text])),
    ],
)
def test_a_dag_that_renders_texts_makes_none_of_a_list(argument, task, text):
    with pytest.raises(InvalidRequest, match=rf"{argument}: the template .* gave a \w+ for a text\. .*native_obj=True"):
        rendered(task(text), 1, native=False)


@BOTH
def test_a_longer_text_has_no_list_in_it_except_sql(native):
    with pytest.raises(InvalidRequest, match=r"sink: ParquetSink\.path: the template .* gave a list for a text"):
        rendered(read(sink=ParquetSink("/lake/{{ params.topics }}")), 1, native=native)
    sql = "SELECT * FROM window WHERE id IN {{ params.x }}"
    assert rendered(read(sink=IcebergSink("s.t"), transform=sql), (1, 2), native=native).transform.endswith("(1, 2)")


class Noting(ReadWindowOperator):
    """A class of a user, with an argument of its own."""

    template_fields = (*ReadWindowOperator.template_fields, "note")

    def __init__(self, *, note: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.note = note


def test_the_argument_of_a_users_own_class_is_as_airflow_renders_it():
    own = Noting(task_id="read", source=PulsarSource("t"), sink=None, note="by {{ params.x }} of {{ params.topics }}")
    assert rendered(own, None, native=False).note == "by None of ['a', 'b']"
