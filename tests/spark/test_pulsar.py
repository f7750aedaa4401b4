"""`format("pulsar")` on a real broker, read by Spark's tasks; the rows are the messages of the official client."""

from __future__ import annotations

import json
import random
import re
import secrets
from contextlib import closing
from datetime import UTC, datetime, timedelta

import pytest

from airflow_provider_streams.errors import EventsLost
from airflow_provider_streams.model.plan.plan import PlanRequest
from airflow_provider_streams.model.sinks.landing import TableMark, TableTerms
from airflow_provider_streams.model.sinks.sink import ParquetSink
from airflow_provider_streams.model.window.window import Window
from airflow_provider_streams.spark import register
from airflow_provider_streams.spark.job.job_spec import WindowSpec
from airflow_provider_streams.systems.pulsar.client.endpoint import Endpoint
from airflow_provider_streams.systems.pulsar.source import PulsarSource
from airflow_provider_streams.systems.pulsar.system import PulsarSystem
from stream_servers.waiting import wait_until
from tests.integration.pulsar.conftest import Workbench, milliseconds
from tests.seeds import chosen_seed
from tests.spark.running import run_window

TERMS = TableTerms(TableMark("spark-tests", "orders", "tests"))

pytestmark = pytest.mark.pulsar

PARTITIONS = 3
MESSAGES = 400
"""So many before the edge, and as many after it."""

PLACE = ("topic", "ledger", "entry", "batch_index")


def run(spec, spark):
    """The receipt of a job."""
    return run_window(spec, spark).receipt


@pytest.fixture(scope="module")
def written(pulsar_server):
    """A topic of three partitions in small ledgers, single messages and batches, and the moment in their middle."""
    import pulsar

    client = pulsar.Client(**Endpoint(pulsar_server.service_url).client_arguments())
    namespace = f"public/test-{secrets.token_hex(4)}"
    pulsar_server.create_namespace(namespace)
    bench = Workbench(pulsar_server, namespace, client)
    topic = bench.topic("orders", PARTITIONS)
    first = datetime.now(UTC)
    write(bench, topic, range(MESSAGES))
    edge = datetime.now(UTC) + timedelta(milliseconds=5)
    wait_until(lambda: datetime.now(UTC) > edge, "the edge")
    write(bench, topic, range(MESSAGES, 2 * MESSAGES))
    end = datetime.now(UTC) + timedelta(milliseconds=5)
    wait_until(lambda: datetime.now(UTC) > end, "the end")
    yield bench, topic, (first, edge, end)
    client.close()
    pulsar_server.delete_namespace(namespace)


def write(bench: Workbench, topic: str, numbers: range) -> None:
    half = len(numbers) // 2
    for part, batch in ((numbers[:half], 1), (numbers[half:], 7)):
        values = [b"%d" % number for number in part]
        bench.write(
            topic, values, batch=batch, send=lambda n: {"partition_key": f"k{n % 10}", "properties": {"n": "1"}}
        )


@pytest.fixture
def load(spark, written):
    register(spark)
    bench, topic, _ = written

    def load(**options: str):
        named = {"service_url": bench.server.service_url, "admin_url": bench.server.admin_url, "topic": topic}
        return spark.read.format("pulsar").options(**{**named, **options}).load()

    return load


def iso(moment: datetime) -> str:
    return moment.isoformat()


def ms(moment: datetime) -> str:
    return str(milliseconds(moment))


def peer_rows(bench: Workbench, topic: str, partitions: int = PARTITIONS) -> dict[tuple, tuple]:
    """Place to value, key and publish time, by the official client."""
    rows = {}
    for partition in range(partitions):
        shard = f"{topic}-partition-{partition}"
        for place, value, key, _, publish_ms, _, message_id in bench.peer(shard):
            rows[partition, *place] = value, key, publish_ms, message_id
    return rows


def our_rows(df) -> dict[tuple, tuple]:
    rows = df.collect()
    found = {
        (row["partition"], row["ledger"], row["entry"], row["batch_index"]): (
            bytes(row["value"]),
            row["key"] or "",
            milliseconds(row["publish_time"].astimezone(UTC)),
        )
        for row in rows
    }
    assert len(found) == len(rows), "no place twice"
    return found


def inside(peer: dict[tuple, tuple], start: datetime, end: datetime) -> dict[tuple, tuple]:
    return {place: row[:3] for place, row in peer.items() if milliseconds(start) <= row[2] < milliseconds(end)}


def test_adjacent_windows_hold_what_the_official_client_sees_of_them(load, written) -> None:
    bench, topic, (first, edge, end) = written
    edge = edge.replace(microsecond=edge.microsecond // 1000 * 1000)
    peer = peer_rows(bench, topic)
    slack = {"slack_seconds": "0.5"}
    before = load(window_start=iso(first), endingTime=ms(edge), target_split_bytes="2000", **slack)
    after = load(startingTime=iso(edge), window_end=iso(end), **slack)
    assert before.rdd.getNumPartitions() > 2 * PARTITIONS, "several tasks for each partition of the topic"
    assert after.rdd.getNumPartitions() >= PARTITIONS
    rows = our_rows(before), our_rows(after)
    assert rows[0] == inside(peer, first, edge)
    assert rows[1] == inside(peer, edge, end)
    assert [len(part) for part in rows] == [MESSAGES, MESSAGES]
    assert rows[0].keys() | rows[1].keys() == peer.keys()


def test_adjacent_cuts_share_no_message_and_miss_none(load, written) -> None:
    bench, topic, _ = written
    peer = peer_rows(bench, topic)
    seed = chosen_seed()
    draw = random.Random(seed)  # noqa: S311 - repeatable by its seed
    places = [draw.choice([place for place in peer if place[0] == partition]) for partition in range(PARTITIONS)]
    cut = {
        f"{topic}-partition-{partition}": f"{ledger}:{entry}:{partition}:{index}"
        for partition, ledger, entry, index in places
    }
    middle = json.dumps(cut)
    before = our_rows(load(startingOffsets="earliest", endingOffsets=middle))
    after = our_rows(load(start_cut=middle, end_cut="latest", target_split_bytes="1500"))
    assert not before.keys() & after.keys(), f"seed {seed}"
    assert before | after == {place: row[:3] for place, row in peer.items()}, f"seed {seed}"
    assert all(place < places[place[0]] for place in before), f"seed {seed}"


def test_without_bounds_a_topic_is_read_to_the_end_it_had_when_it_was_loaded(load, written) -> None:
    bench, *_ = written
    topic = bench.topic("growing", 2)
    write(bench, topic, range(40))
    df, before = load(topic=topic), {place: row[:3] for place, row in peer_rows(bench, topic, 2).items()}
    assert our_rows(df) == before
    write(bench, topic, range(40, 60))
    assert our_rows(df) == before, "another action reads the same"
    assert df.filter("value is not null").count() == len(before) == 40
    assert our_rows(load(topic=topic)) == {place: row[:3] for place, row in peer_rows(bench, topic, 2).items()}


def plan_of(bench: Workbench, topic: str, start: datetime, end: datetime, **more):
    with closing(PulsarSystem.from_options(options_of(bench))) as system:
        slack = timedelta(seconds=0.5)
        return system.plan(PlanRequest(PulsarSource(topic), Window(start, end), "tests", slack=slack, **more))


def options_of(bench: Workbench) -> dict[str, str]:
    return {"service_url": bench.server.service_url, "admin_url": bench.server.admin_url}


def test_a_plan_says_what_to_read_as_text_or_as_a_file(spark, load, written, tmp_path) -> None:
    bench, topic, (first, edge, _) = written
    text = json.dumps(plan_of(bench, topic, first, edge, target_split_bytes=2000).to_json())
    (tmp_path / "plan.json").write_text(text)
    for plan in (text, str(tmp_path / "plan.json")):
        df = spark.read.format("pulsar").options(**options_of(bench), plan=plan).load()
        assert our_rows(df) == inside(peer_rows(bench, topic), first, edge)


def test_an_empty_window_is_an_empty_frame_with_its_columns(load, written) -> None:
    *_, (first, _, _) = written
    df = load(window_start=iso(first - timedelta(minutes=2)), window_end=iso(first - timedelta(minutes=1)))
    assert (df.count(), df.rdd.getNumPartitions()) == (0, 1)
    assert {"value", "key", "publish_time", *PLACE} <= set(df.columns)
    both = load(start_cut="latest", end_cut="latest", receipt="true")
    assert both.collect() == []


def test_columns_are_those_that_were_asked_and_equal_the_official_clients(load, written) -> None:
    bench, topic, _ = written
    peer = peer_rows(bench, topic)
    names = "message_id,properties,value,partition,ledger,entry,batch_index"
    df = load(start_cut="earliest", end_cut="latest", columns=names)
    assert df.columns == names.split(",")
    rows = df.collect()
    assert len(rows) == len(peer)
    for row in rows:
        value, _, _, message_id = peer[row["partition"], row["ledger"], row["entry"], row["batch_index"]]
        assert (bytes(row["value"]), bytes(row["message_id"])) == (value, message_id)
        assert dict(row["properties"]) == {"n": "1"}
    assert load(start_cut="earliest", end_cut="latest").selectExpr("count(distinct value)").first()[0] == len(peer)


def test_a_partition_that_vanishes_while_tasks_read_is_a_typed_error_in_its_place(spark, written, tmp_path) -> None:
    from pyspark.errors import PythonException

    bench, _, _ = written
    topic = bench.topic("doomed", 2)
    start = datetime.now(UTC)
    write(bench, topic, range(100))
    end = datetime.now(UTC) + timedelta(milliseconds=5)
    wait_until(lambda: datetime.now(UTC) > end + timedelta(seconds=0.5), "the end")
    plan = plan_of(bench, topic, start, end)
    register(spark)
    df = spark.read.format("pulsar").options(**options_of(bench), plan=json.dumps(plan.to_json())).load()
    assert df.count() == 100
    gone = f"{topic}-partition-1"
    bench.server.admin("DELETE", f"{bench.path(gone)}?force=true")
    with pytest.raises(PythonException) as caught:
        df.count()
    lines = str(caught.value).strip().splitlines()
    said = [line for line in lines if re.match(r"\S*streams\.errors\.EventsLost: .*partition-1", line)]
    assert len(said) == 1, lines
    assert "raise for_options(error)" in str(caught.value), "the place is the error's, not the clean-up's"
    assert len(lines) < 8
    sink = ParquetSink(str(tmp_path / "lake"))
    with pytest.raises(EventsLost, match="partition-1") as typed:
        run(WindowSpec(plan, sink, options=options_of(bench), small_plan_bytes=0, terms=TERMS), spark)
    assert typed.value.__cause__ is None
    assert len(str(typed.value).splitlines()) == 1


def test_a_job_of_tasks_lands_what_the_official_client_sees(spark, written, tmp_path) -> None:
    bench, topic, (first, edge, _) = written
    sink = ParquetSink(str(tmp_path / "lake"))
    plan = plan_of(bench, topic, first, edge, target_split_bytes=2000)
    receipt = run(WindowSpec(plan, sink, options=options_of(bench), small_plan_bytes=0, terms=TERMS), spark)
    assert (receipt.rows, receipt.verdict) == (MESSAGES, "complete")
    assert our_rows(spark.read.parquet(sink.path)) == inside(peer_rows(bench, topic), first, edge)
