"""`format("pravega")` on a real server, read by Spark's tasks; the rows are the events that the Java client sees."""

from __future__ import annotations

import hashlib
import json
import re
import struct
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
from airflow_provider_streams.systems.pravega.metadata import queries
from airflow_provider_streams.systems.pravega.metadata.event_pointer import EventPointer
from airflow_provider_streams.systems.pravega.operations import administration, scaling
from airflow_provider_streams.systems.pravega.operations.stream_settings import StreamSettings
from airflow_provider_streams.systems.pravega.planning import cuts
from airflow_provider_streams.systems.pravega.source import PravegaSource
from airflow_provider_streams.systems.pravega.system import PravegaSystem
from airflow_provider_streams.testing.pravega_writer import PravegaWriter
from tests.integration.pravega.conftest import Peer
from tests.spark.running import run_window

TERMS = TableTerms(TableMark("spark-tests", "orders", "tests"))

pytestmark = pytest.mark.pravega

FIRST, SECOND = range(40), range(40, 140)


def run(spec, spark):
    """The receipt of a job."""
    return run_window(spec, spark).receipt


@pytest.fixture(scope="module")
def written(pravega_server):
    """A stream with 40 events, a cut, a split, 100 events, and a cut."""
    with closing(PravegaSystem.from_options({"controller": pravega_server.controller_uri})) as system:
        client = system.client
        client.run(administration.create("spark-tests/orders", StreamSettings(), make_scope=True))

        def tail():
            return client.run(cuts.tail("spark-tests/orders"))

        with PravegaWriter(client.endpoint, "spark-tests/orders") as writer:
            writer.write((f"k{number}", b"%d" % number) for number in FIRST)
            middle = tail()
            client.run(scaling.scale("spark-tests/orders", scaling.split(0)))
            writer.write((f"k{number}", b"%d" % number) for number in SECOND)
        yield system, middle, tail()


@pytest.fixture
def load(spark, pravega_server, written):
    register(spark)

    def load(**options: str):
        named = {"controller": pravega_server.controller_uri, "scope": "spark-tests", "stream": "orders"}
        return spark.read.format("pravega").options(**{**named, **options}).load()

    load.uri = pravega_server.controller_uri
    return load


def numbers(df) -> list[int]:
    return sorted(int(row["event"]) for row in df.collect())


def test_it_stands_alone_in_the_jvm_connectors_words(load, written):
    _, middle, end = written
    df = load(
        start_stream_cut=middle.to_text(),
        end_stream_cut=end.to_text(),
        allow_create_stream="false",
        exactly_once="true",
    )
    assert df.columns == ["event", "scope", "stream", "segment_id", "offset"]
    assert numbers(df) == list(SECOND)
    assert {(row["scope"], row["stream"]) for row in df.collect()} == {("spark-tests", "orders")}
    before = load(start_stream_cut="earliest", end_stream_cut=middle.to_text())
    assert numbers(before) == list(FIRST), "adjacent cuts share no event and miss none"


@pytest.mark.parametrize(("start", "end"), [("earliest", "latest"), ("unbounded", "unbounded")])
def test_open_ends_are_resolved_once(load, start, end):
    assert numbers(load(start_stream_cut=start, end_stream_cut=end)) == [*FIRST, *SECOND]


def test_without_bounds_the_stream_is_read_to_the_end_it_had_when_it_was_loaded(load, written):
    system, *_ = written
    client = system.client
    client.run(administration.create("spark-tests/growing", StreamSettings(), make_scope=True))
    with PravegaWriter(client.endpoint, "spark-tests/growing") as writer:
        writer.write((f"k{number}", b"%d" % number) for number in FIRST)
        df = load(stream="growing")
        assert numbers(df) == list(FIRST)
        writer.write((f"k{number}", b"%d" % number) for number in SECOND)
        assert numbers(df) == list(FIRST), "another action reads the same"
        assert df.filter("event is not null").count() == len(FIRST)
        assert numbers(load(stream="growing")) == [*FIRST, *SECOND]


def test_a_plan_says_what_to_read(load, written, pravega_server, spark):
    system, middle, end = written
    window = Window(datetime(2026, 11, 20, tzinfo=UTC), datetime(2026, 11, 20, tzinfo=UTC) + timedelta(hours=1))
    request = PlanRequest(
        PravegaSource("spark-tests/orders"),
        window,
        "tests",
        basis="append",
        start_cut=middle.to_model(),
        end_cut=end.to_model(),
    )
    plan = json.dumps(system.plan(request).to_json())
    read = spark.read.format("pravega").options(controller=pravega_server.controller_uri, plan=plan).load()
    assert numbers(read) == list(SECOND)
    assert read.rdd.getNumPartitions() == 2, "one for each segment that holds something"


def test_event_pointers_are_made_on_request(load, written):
    _, middle, end = written
    cut = {"start_stream_cut": middle.to_text(), "end_stream_cut": end.to_text()}
    for row in load(columns="event,segment,offset,next_offset,event_pointer", **cut).collect():
        length = row["next_offset"] - row["offset"]
        assert EventPointer.from_bytes(bytes(row["event_pointer"])) == (row["segment"], row["offset"], length)
        assert length == len(row["event"]) + 8


@pytest.fixture(scope="module")
def java(pravega_server, tmp_path_factory):
    """Pravega's own client."""
    peer = Peer(pravega_server, tmp_path_factory.mktemp("peer") / "logback.xml")
    yield peer
    peer.close()


def digests(df) -> dict[int, tuple[int, str]]:
    """Per segment: events, and the SHA-256 of the length-prefixed payloads in the segment's order."""
    found: dict[int, tuple[int, str]] = {}
    rows = sorted(df.collect(), key=lambda row: (row["segment_id"], row["offset"]))
    for segment in {row["segment_id"] for row in rows}:
        events = [bytes(row["event"]) for row in rows if row["segment_id"] == segment]
        digest = hashlib.sha256(b"".join(struct.pack(">i", len(event)) + event for event in events))
        found[segment] = len(events), digest.hexdigest()
    return found


def java_digests(java: Peer, start, end) -> dict[int, tuple[int, str]]:
    return {segment: answer[2:] for segment, answer in java.digests("spark-tests/orders", start, end).items()}


def test_tasks_read_what_the_java_client_reads(load, written, java):
    """Between cuts, and as a whole."""
    _, middle, end = written
    java.write("spark-tests/orders", 300, size=40, tag="j")
    with closing(PravegaSystem.from_options({"controller": load.uri})) as system:
        later = system.client.run(cuts.tail("spark-tests/orders"))
    for start, stop in ((middle, end), (end, later), (middle, later)):
        df = load(startingCut=start.to_text(), endingOffsets=stop.to_text())
        assert digests(df) == java_digests(java, start, stop)
    assert df.rdd.getNumPartitions() == 2, "a task for each segment that holds something"
    assert df.count() == len(SECOND) + 300
    whole = load(start_cut="earliest", end_stream_cut=later.to_text(), columns="event,segment_id,offset")
    assert digests(whole) == java_digests(java, None, later)


def test_an_empty_window_is_an_empty_frame_with_its_columns(load, written):
    _, middle, _ = written
    cut = middle.to_text()
    df = load(start_stream_cut=cut, end_stream_cut=cut)
    assert (df.count(), df.columns) == (0, ["event", "scope", "stream", "segment_id", "offset"])
    assert load(start_stream_cut=cut, end_stream_cut=cut, receipt="true", columns="event").collect() == []


def test_a_truncation_under_the_tasks_is_a_typed_error_in_its_place(load, spark, pravega_server, tmp_path):
    from pyspark.errors import PythonException

    stream = "spark-doomed/orders"
    options = {"controller": pravega_server.controller_uri}
    with closing(PravegaSystem.from_options(options)) as system:
        client = system.client
        client.run(administration.create(stream, StreamSettings(), make_scope=True))
        start = client.run(cuts.tail(stream))
        with PravegaWriter(client.endpoint, stream) as writer:
            writer.write((f"k{number}", b"%d" % number) for number in range(100))
        end = client.run(cuts.tail(stream))
        df = load(scope="spark-doomed", start_cut=start.to_text(), end_cut=end.to_text())
        assert df.count() == 100
        window = Window(datetime(2026, 11, 20, tzinfo=UTC), datetime(2026, 11, 20, 1, tzinfo=UTC))
        cut = {"start_cut": start.to_model(), "end_cut": end.to_model()}
        plan = system.plan(PlanRequest(PravegaSource(stream), window, "tests", basis="cuts", **cut))
        client.run(administration.truncate(stream, end))
    with pytest.raises(PythonException) as caught:
        df.count()
    lines = str(caught.value).strip().splitlines()
    said = [line for line in lines if re.match(r"\S*streams\.errors\.EventsLost: .*doomed", line)]
    assert len(said) == 1, lines
    assert "raise for_options(error)" in str(caught.value), "the place is the error's, not the clean-up's"
    assert len(lines) < 8
    sink = ParquetSink(str(tmp_path / "lake"))
    with pytest.raises(EventsLost, match="doomed"):
        run(WindowSpec(plan, sink, options=options, small_plan_bytes=0, terms=TERMS), spark)
    assert not list((tmp_path / "lake").glob("window_start=*"))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"stream": "typo", "start_cut": "earliest"}, "spark-tests/typo does not exist"),
        ({"scope": "typo", "start_cut": "earliest"}, "scope typo does not exist"),
        ({"start_stream_cut": "earliest", "start_cut": "latest"}, "given twice"),
        ({"start_stream_cut": "H4sI"}, "is not a stream cut"),
        ({"window_start": "2026-11-20T10:00Z"}, "say what to read"),
        ({"basis": "append"}, "say what to read"),
        ({"window_start": "2026-11-20T10:00Z", "window_end": "2026-11-20T11:00Z"}, "cannot be read"),
        ({"metadata": "StreamInfo"}, "no option 'metadata'"),
    ],
)
def test_what_cannot_be_read_is_refused_and_makes_nothing(load, written, options, message):
    from pyspark.errors import AnalysisException

    system, *_ = written
    with pytest.raises(AnalysisException, match=message):
        load(**options)
    assert "spark-tests/typo" not in system.client.run(queries.streams("spark-tests"))
    assert "typo" not in system.client.run(queries.scopes())
