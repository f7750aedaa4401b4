"""`spark.read.format(..)` by itself, without Airflow."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest

from airflow_provider_streams.spark import register
from airflow_provider_streams.testing.fake import EPOCH

START, END = ((EPOCH + timedelta(minutes=minute)).isoformat() for minute in (10, 20))


@pytest.fixture
def load(spark, stream):
    register(spark)

    def load(schema: str | None = None, **options: str):
        reader = spark.read.format("fake").options(**stream.options, **options)
        return (reader.schema(schema) if schema else reader).load()

    return load


def numbers(df) -> list[tuple[str, int]]:
    return sorted((row["shard"], row["number"]) for row in df.collect())


@pytest.mark.parametrize(
    "options",
    [
        {"window_start": START, "window_end": END},
        {"WINDOW_START": START, "endingTime": END},
        {"startingTime": str(int((EPOCH + timedelta(minutes=10)).timestamp() * 1000)), "window_end": END},
        {"start_cut": "600", "end_cut": json.dumps({"numbers-0": "1200", "numbers-1": "1200"})},
    ],
)
def test_a_window_or_cuts_say_what_to_read(load, stream, options: dict[str, str]) -> None:
    assert numbers(load(**options)) == stream.numbers


def test_a_plan_says_what_to_read_as_text_or_as_a_file(load, stream, tmp_path) -> None:
    text = json.dumps(stream.plan().to_json())
    (tmp_path / "plan.json").write_text(text)
    assert numbers(load(plan=text)) == numbers(load(plan=str(tmp_path / "plan.json"))) == stream.numbers


def test_what_was_resolved_stays_while_the_stream_moves(load, stream) -> None:
    df = load(start_cut="earliest", end_cut="latest")
    stream.set(events=4000)
    assert df.count() == 6000
    assert df.join(df.selectExpr("number as twin"), df.number == 0).where("twin = 0").count() == 4


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"window_strat": START}, "did you mean 'window_start'"),
        ({"window_start": START}, "say what to read"),
        ({"window_start": START, "startingTime": END, "window_end": END}, "given twice"),
        ({"window_start": "2026-11-20T10:00", "window_end": END}, "time zone"),
        ({"window_start": START, "window_end": END, "columns": "valuex"}, "no column 'valuex'"),
        ({"window_start": START, "window_end": END, "receipt": "maybe"}, "true or false"),
        ({"window_start": START, "window_end": "2027-11-20T10:00Z"}, "cannot be read yet"),
        ({"plan": "/no/such/plan.json"}, "cannot be read from its file"),
        ({"plan": "{}"}, "this is not a plan: it lacks '"),
    ],
)
def test_options_that_make_no_read_are_refused_at_load(load, options: dict[str, str], message: str) -> None:
    from pyspark.errors import AnalysisException

    with pytest.raises(AnalysisException, match=message):
        load(**options)


def test_it_neither_writes_nor_streams(load, spark) -> None:
    from pyspark.errors import AnalysisException, StreamingQueryException

    with pytest.raises(AnalysisException, match="format 'fake' only reads"):
        load(window_start=START, window_end=END).write.format("fake").mode("append").save()
    query = spark.readStream.format("fake").options(events="60").load().writeStream.format("noop")
    with pytest.raises(StreamingQueryException, match=r"use spark\.read, not readStream"):
        query.start().awaitTermination(600)


@pytest.mark.parametrize(("fault", "name"), [("drop:1:700", "ReceiptMismatch"), ("trim:0:700", "EventsLost")])
def test_a_missing_event_is_an_error_without_a_job_too(load, stream, fault: str, name: str) -> None:
    from pyspark.errors import PythonException

    df = load(window_start=START, window_end=END)
    stream.set(fault=fault)
    with pytest.raises(PythonException, match=rf"errors\.{name}: "):
        df.count()


def test_loss_can_be_accepted_in_other_connectors_words(load, stream) -> None:
    stream.set(fault="trim:0:700")
    assert load(window_start=START, window_end=END, failOnDataLoss="false").count() == 1100


def test_receipts_are_one_extra_row_per_split(load, stream) -> None:
    df = load(plan=json.dumps(stream.plan().to_json()), receipt="true")
    receipts = [json.loads(row["_receipt"]) for row in df.collect() if row["_receipt"]]
    assert [receipt["index"] for receipt in sorted(receipts, key=lambda one: one["index"])] == list(range(6))
    assert sum(receipt["rows"] for receipt in receipts) == df.where("_receipt is null").count() == 1200


def test_a_schema_of_the_user_is_taken_if_it_is_the_same(load) -> None:
    window = {"window_start": START, "window_end": END, "columns": "number,shard"}
    assert load(schema="number bigint, shard string", **window).count() == 1200
    with pytest.raises(Exception, match="decides its own schema"):
        load(schema="number int, shard string", **window).count()


def test_a_secret_option_stands_in_no_plan_of_spark(load, spark, stream, capsys) -> None:
    stream.set(password="canary-77aa11")
    stream.token = "canary-77aa11"
    df = load(window_start=START, window_end=END)
    df.explain(mode="extended")
    df.createOrReplaceTempView("numbers")
    described = str(spark.sql("describe extended numbers").collect())
    assert df.count() == 1200
    assert "canary" not in capsys.readouterr().out + described


def test_a_plan_of_another_life_of_the_source_is_refused(load, stream) -> None:
    from pyspark.errors import AnalysisException

    text = json.dumps(stream.plan().to_json())
    stream.set(life="7")
    with pytest.raises(AnalysisException, match=r"errors\.SourceReplaced: numbers"):
        load(plan=text)


def test_an_empty_window_is_an_empty_frame_with_its_columns(load) -> None:
    df = load(start_cut="600", end_cut="600")
    assert (df.count(), df.columns) == (0, ["value", "publish_time", "shard", "number"])
    assert load(start_cut="600", end_cut="600", receipt="true").collect() == []
