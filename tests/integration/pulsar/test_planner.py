# ruff: noqa: S311 - random test data
import base64
import random
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path

import httpx
import pytest

from airflow_provider_streams.errors import InvalidRequest, SourceNotFound, StartTrimmed, StartUnproven, WindowNotReady
from airflow_provider_streams.model.plan.plan import Plan, PlanRequest
from airflow_provider_streams.model.plan.receipt import compare
from airflow_provider_streams.model.stream.cut import Cut
from airflow_provider_streams.model.stream.position import Position
from airflow_provider_streams.model.window.window import Window
from airflow_provider_streams.systems.pulsar.client.admin.client import CONCURRENCY
from airflow_provider_streams.systems.pulsar.planning import planner
from airflow_provider_streams.systems.pulsar.source import PulsarSource
from airflow_provider_streams.systems.pulsar.system import PulsarSystem
from stream_servers.java import run_java, start_java
from stream_servers.waiting import wait_until

pytestmark = pytest.mark.pulsar

MILLISECOND = timedelta(milliseconds=1)
HERE = Path(__file__).parent


@pytest.fixture
def system(bench):
    return PulsarSystem(bench.endpoint)


def texts(first, count):
    return [b"%06d" % number for number in range(first, first + count)]


def now():
    return datetime.now(UTC)


def request(topic, window, basis="publish", **given):
    source = topic if isinstance(topic, PulsarSource) else PulsarSource(topic)
    return PlanRequest(source, window, "tests", basis=basis, **{"slack": MILLISECOND, **given})


def read(system, plan, column="value", verdict=None):
    """Every row's value, after plan, receipts and explanations agree."""
    plan = Plan.from_json(plan.to_json())
    rows, receipts = [], []
    for split in plan.splits:
        reader = system.read(plan, split, [column])
        rows += [row for batch in reader for row in batch.column(0).to_pylist()]
        receipts.append(reader.receipt)
    receipts = system.explain(plan, receipts, on_loss="fail")
    assert compare(plan, receipts, seconds=0).verdict in ({verdict} if verdict else {"complete", "loss recorded"})
    return rows


def elapsed_window(bench, start=None):
    """Around all that was written since the last topic was made, and over: its last millisecond is past."""
    end = now()
    wait_until(lambda: now() > end + 5 * MILLISECOND, "a few milliseconds")
    return Window(start or bench.made, end)


@pytest.mark.slow_except("2000")
@pytest.mark.parametrize("target", [1, 2_000, 64_000_000])
def test_random_adjacent_publish_windows_tile_exactly(bench, system, target):
    topic = bench.topic(partitions=2)
    expected = []
    for round_number in range(6):
        values = texts(1000 * round_number, 60)
        bench.write(topic, values, batch=(1, 7)[round_number % 2])
        expected += values
    whole = elapsed_window(bench)
    times = sorted(set(read(system, system.plan(request(topic, whole)), "publish_time")))
    dice = random.Random(target)
    inner = dice.sample(times, min(5, len(times)))
    edges = sorted({whole.start, *inner, inner[0] + MILLISECOND, whole.end})
    parts = [
        read(system, system.plan(request(topic, Window(*pair), target_split_bytes=target))) for pair in pairwise(edges)
    ]
    assert sorted(value for part in parts for value in part) == sorted(expected)
    assert sum(map(bool, parts)) > 2, "the edges part the rows"


def test_chained_windows_tile_while_the_topic_grows(bench, system):
    topic = bench.topic()
    cut, rows, moment = None, [], now() - timedelta(hours=1)
    for number in range(5):
        # nothing is written before the first and the fourth
        if number not in {0, 3}:
            bench.write(topic, texts(1000 * number, 70), batch=(number % 2) * 8 + 1)
        window = Window(moment, moment + timedelta(minutes=1))
        plan = system.plan(request(topic, window, "chained", start_cut=cut))
        assert cut is None or plan.start_cut == cut
        cut, moment = plan.end_cut, window.end
        rows.append(read(system, plan))
    assert [len(part) for part in rows] == [0, 70, 70, 0, 70]
    assert [value for part in rows for value in part] == [v for n in (1, 2, 4) for v in texts(1000 * n, 70)]


def test_random_cuts_tile_exactly_also_inside_batches(bench, system):
    topic = bench.topic()
    bench.write(topic, texts(0, 210), batch=7)
    bench.write(topic, texts(1000, 60))
    bounds = system.parse_cut(PulsarSource(topic), "earliest"), system.parse_cut(PulsarSource(topic), "latest")
    stored = [(span.run, entry) for span in bench.spans(topic) for entry in range(span.first, span.end)]
    dice = random.Random(3)
    for _ in range(3):
        inner = [Position.of(*dice.choice(stored), dice.choice([-1, 1, 4])) for _ in range(4)]
        cuts = [bounds[0], *(Cut({topic: place}) for place in sorted(set(inner))), bounds[1]]
        rows = []
        for start, end in pairwise(cuts):
            plan = system.plan(request(topic, elapsed_window(bench), "cuts", start_cut=start, end_cut=end))
            assert (plan.start_cut, plan.end_cut) == (start, end)
            rows += read(system, plan)
        # a place inside a batch is past a single message: it is not given twice, nor lost
        assert sorted(rows) == texts(0, 210) + texts(1000, 60)


def test_user_notations_of_one_message_agree(bench, system):
    topic = bench.topic()
    bench.write(topic, texts(0, 10))
    source = PulsarSource(topic)
    ledger = bench.spans(topic)[0].run
    (serialized,) = [row[-1] for row in bench.peer(topic) if row[0][1] == 4]
    for text in (f"{ledger}:4", base64.b64encode(serialized).decode(), f'{{"ledgerId": {ledger}, "entryId": 4}}'):
        start, end = system.parse_cut(source, text), system.parse_cut(source, f"after {text}")
        plan = system.plan(request(topic, elapsed_window(bench), "cuts", start_cut=start, end_cut=end))
        assert read(system, plan) == texts(4, 1)


def test_an_idle_and_an_empty_topic_are_ready_and_empty(bench, system):
    empty, idle = bench.topic("empty", partitions=2), bench.topic("idle")
    bench.write(idle, texts(0, 5))
    later = elapsed_window(bench, now())
    for topic in (empty, idle):
        plan = system.plan(request(topic, later))
        assert plan.is_empty
        assert {part.verdict for part in plan.ranges} == {"empty"}


def test_a_window_is_not_ready_before_its_slack_has_passed(bench, system):
    topic = bench.topic()
    with pytest.raises(WindowNotReady, match="earliest"):
        system.plan(request(topic, elapsed_window(bench), slack=timedelta(minutes=1)))
    with pytest.raises(WindowNotReady):
        system.plan(request(topic, Window(now(), now() + timedelta(hours=1)), "chained"))


@pytest.mark.parametrize("count", [0, 60])
def test_a_terminated_topic_ends_where_it_ends(bench, system, count):
    topic = bench.topic()
    bench.write(topic, texts(0, count))
    bench.server.admin("POST", f"{bench.path(topic)}/terminate")
    for basis in ("publish", "chained"):
        assert read(system, system.plan(request(topic, elapsed_window(bench), basis))) == texts(0, count)


def trim(bench, topic):
    bench.server.set_retention(bench.namespace, minutes=0, megabytes=0)
    kept = bench.spans(topic)[-1].run

    def is_trimmed():
        bench.server.admin("POST", f"{bench.path(topic)}/trim")
        return len(bench.spans(topic)) <= 1

    wait_until(is_trimmed, "the old ledgers are removed")
    return kept


def test_a_trimmed_start_is_an_error_and_an_accepted_loss_is_recorded(bench, system):
    topic = bench.topic()
    start = now()
    bench.write(topic, texts(0, 60))
    seen = system.observe_tail(PulsarSource(topic))
    bench.write(topic, texts(60, 60))
    window = elapsed_window(bench)
    first = system.plan(request(topic, Window(start, window.end), "chained"))
    assert len(read(system, first)) == 120
    trim(bench, topic)
    assert system.plan(request(topic, Window(start, window.end))).unproven, "today's retention proves nothing"
    with pytest.raises(StartTrimmed) as caught:
        system.plan(request(topic, Window(start, window.end), first_seen=seen))
    assert caught.value.shard == topic
    plan = system.plan(request(topic, Window(start, window.end), first_seen=seen, on_loss="record"))
    assert read(system, plan) == texts(100, 20)
    assert [loss.shard for loss in plan.losses] == [topic]
    with pytest.raises(StartTrimmed, match="is gone"):
        system.plan(request(topic, elapsed_window(bench), "cuts", start_cut=first.start_cut))


def test_a_window_after_the_trimmed_part_is_complete(bench, system):
    topic = bench.topic()
    bench.write(topic, texts(0, 110))
    wait_until(lambda: bench.spans(topic)[-1].entries == 10, "the third ledger has its entries")
    bench.write(topic, texts(110, 5))
    rows = bench.peer(topic)
    start = datetime.fromtimestamp(rows[-5][4] / 1000, UTC)
    end = elapsed_window(bench).end
    trim(bench, topic)
    plan = system.plan(request(topic, Window(start, end)))
    assert plan.losses == ()
    assert set(texts(110, 5)) <= set(read(system, plan))
    assert plan.ranges[0].verdict.startswith("edge: ")


def test_the_horizon_is_where_the_trimmed_part_ends(bench, system):
    topic = bench.topic()
    bench.write(topic, texts(0, 120))
    rows = bench.peer(topic)
    assert system.horizon(PulsarSource(topic)) is None, "nothing was removed"
    trim(bench, topic)
    horizon = system.horizon(PulsarSource(topic))
    assert horizon == datetime.fromtimestamp(rows[100][4] / 1000, UTC)
    # by more than slack, which is a millisecond here
    assert system.plan(request(topic, Window(horizon + 2 * MILLISECOND, elapsed_window(bench).end))).losses == ()


def test_a_new_topic_that_lost_nothing_needs_no_proof_by_policy(bench, system):
    bench.server.set_retention(bench.namespace, minutes=0, megabytes=0)
    topic = bench.topic()
    bench.write(topic, texts(0, 20))
    plan = system.plan(request(topic, elapsed_window(bench)))
    assert plan.losses == ()
    assert read(system, plan) == texts(0, 20)


def test_of_a_topic_made_anew_unseen_nobody_knows_what_it_held(bench, system):
    topic = bench.topic()
    start = bench.made
    bench.write(topic, texts(0, 20))
    bench.server.admin("DELETE", f"{bench.path(topic)}?force=true")
    deleted = elapsed_window(bench).end
    bench.server.admin("PUT", bench.path(topic))
    bench.write(topic, texts(20, 5))
    window = elapsed_window(bench, start)
    plan = system.plan(request(topic, window))
    assert "no earlier one of its name is known" in plan.unproven[0].verdict
    assert read(system, plan, verdict="unproven") == texts(20, 5)
    assert system.plan(request(topic, Window(start, deleted))).unproven, "before the topic was made"
    with pytest.raises(StartUnproven):
        system.plan(request(topic, window, on_unproven="fail"))


@pytest.mark.parametrize("source", ["missing", "missing-partition-0"])
@pytest.mark.usefixtures("pulsar_unchanged")
def test_a_missing_topic_is_not_found_and_not_created(bench, system, source):
    for basis in ("publish", "chained"):
        with pytest.raises(SourceNotFound):
            system.plan(request(f"{bench.namespace}/{source}", elapsed_window(bench), basis))
    with pytest.raises(SourceNotFound):
        system.plan(request(PulsarSource(pattern=f"{bench.namespace}/none-.*"), elapsed_window(bench)))


def test_a_pattern_reads_what_it_matched(bench, system):
    for topic in (bench.topic("orders", partitions=2), bench.topic("invoices")):
        bench.write(topic, texts(0, 10))
    source = PulsarSource(pattern=f"persistent://{bench.namespace}/orders-.*")
    plan = system.plan(request(source, elapsed_window(bench)))
    assert sorted(read(system, plan)) == texts(0, 10)
    assert len(plan.source.names) == 1


def test_cuts_that_do_not_fit_are_refused(bench, system):
    topic = bench.topic()
    bench.write(topic, texts(0, 10))
    head, tail = (system.parse_cut(PulsarSource(topic), text) for text in ("earliest", "latest"))
    with pytest.raises(InvalidRequest, match="before the start"):
        system.plan(request(topic, elapsed_window(bench), "cuts", start_cut=tail, end_cut=head))
    ledger, entry, _ = tail[topic].parts
    beyond = Cut({topic: Position.of(ledger, entry + 1, -1)})
    with pytest.raises(WindowNotReady, match="beyond the tail"):
        system.plan(request(topic, elapsed_window(bench), "cuts", end_cut=beyond))


@pytest.mark.parametrize("basis", ["publish", "chained"])
def test_a_clock_that_is_ahead_of_the_broker_s_ends_no_window_early(bench, system, monkeypatch, basis):
    class Ahead(datetime):
        @classmethod
        def now(cls, tz=None):
            return datetime.now(tz) + timedelta(minutes=5)

    monkeypatch.setattr(planner, "datetime", Ahead)
    topic, start = bench.topic(), now()
    bench.write(topic, texts(0, 5))
    half_over = request(topic, Window(start, now() + timedelta(minutes=3)), basis)
    with pytest.raises(WindowNotReady, match="This machine's clock is ahead: synchronize both by NTP"):
        system.plan(half_over)
    with pytest.raises(WindowNotReady, match="clock is ahead"):
        system.check_ready(half_over)


def test_transactions_hold_a_window_back_until_they_end(bench, system):
    topic = bench.topic()
    source = HERE / "OpenTransaction.java"
    with start_java(source, [bench.server.service_url, topic], bench.server.classpath) as peer:
        assert "READY" in iter_line(peer)
        window = elapsed_window(bench)
        with pytest.raises(WindowNotReady, match="open transaction"):
            system.plan(request(topic, window))
        # what is before it can be read, in a chain
        first = system.plan(request(topic, window, "chained"))
        assert read(system, first) == [b"plain0", b"plain1", b"plain2"]
        peer.communicate("\n", timeout=600)
    rows = read(system, system.plan(request(topic, window)))
    assert rows == [b"plain0", b"plain1", b"plain2", b"open0", b"open1", b"after"]
    second = system.plan(request(topic, elapsed_window(bench), "chained", start_cut=first.end_cut))
    assert read(system, second) == [b"open0", b"open1", b"after"]


def iter_line(peer):
    while (line := peer.stdout.readline()) and "READY" not in line:
        pass
    return line


@pytest.mark.slow_except("publish")
@pytest.mark.parametrize("basis", ["publish", "chained"])
def test_markers_and_aborted_messages_are_explained(bench, system, basis):
    topic = bench.topic()
    run_java(HERE / "Txn.java", [bench.server.service_url, topic, "false"], bench.server.classpath)
    rows = read(system, system.plan(request(topic, elapsed_window(bench), basis)))
    assert rows == [b"plain0", b"plain1", b"plain2", b"committed0", b"committed1", b"between0"]


def test_a_compacted_topic_gives_every_stored_message(bench, system):
    topic = bench.topic()
    for value in texts(0, 60):
        bench.write(topic, [value], send=lambda _: {"partition_key": "same"})
    whole = elapsed_window(bench)
    bench.server.admin("PUT", f"{bench.path(topic)}/compaction")
    compaction = f"{bench.path(topic)}/compaction"
    wait_until(lambda: bench.server.admin("GET", compaction)["status"] == "SUCCESS", "compaction")
    times = [row[4] for row in bench.peer(topic)]
    middle = datetime.fromtimestamp(times[30] / 1000, UTC)
    parts = [
        read(system, system.plan(request(topic, Window(*pair)))) for pair in pairwise([whole.start, middle, whole.end])
    ]
    assert [value for part in parts for value in part] == texts(0, 60)
    assert len(parts[0]) == sum(ms < times[30] for ms in times)


def test_fifty_partitions_are_planned_with_many_requests_at_a_time(bench, system, monkeypatch):
    topic = bench.topic(partitions=50)
    bench.write(topic, texts(0, 500))
    window = elapsed_window(bench)
    waiting, most, asked = 0, 0, 0
    ask = httpx.AsyncHTTPTransport.handle_async_request

    async def noted(transport, message):
        nonlocal waiting, most, asked
        waiting, asked = waiting + 1, asked + 1
        most = max(most, waiting)
        try:
            return await ask(transport, message)
        finally:
            waiting -= 1

    monkeypatch.setattr(httpx.AsyncHTTPTransport, "handle_async_request", noted)
    plan = system.plan(request(topic, window))
    assert len(plan.ranges) == 50
    assert sum(part.entries for part in plan.ranges) == 500
    assert most == CONCURRENCY
    assert asked < 6 * 50
