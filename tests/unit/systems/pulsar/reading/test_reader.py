"""What a reader promises when brokers misbehave; what they do when all is well: tests/integration/pulsar."""

from __future__ import annotations

import datetime as dt
import struct
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from airflow_provider_streams.errors import (
    CorruptFrame,
    EventsLost,
    InvalidRequest,
    ReadStalled,
    ReceiptMismatch,
    StreamsError,
)
from airflow_provider_streams.model.plan.plan import SourceRef, Span, Split
from airflow_provider_streams.model.plan.receipt import compare
from airflow_provider_streams.model.plan.row_filter import FieldFilter, RowFilter
from airflow_provider_streams.model.stream.position import Position
from airflow_provider_streams.model.window.window import Window
from airflow_provider_streams.systems.pulsar.client.endpoint import Endpoint
from airflow_provider_streams.systems.pulsar.client.wire import commands_pb2 as pb
from airflow_provider_streams.systems.pulsar.client.wire.frames import BrokerEntry
from airflow_provider_streams.systems.pulsar.reading import entry_fetcher as feed_module
from airflow_provider_streams.systems.pulsar.reading.reader import PulsarSplitReader
from airflow_provider_streams.testing.plans import plan_of as whole
from tests.fuzz.writer import usual
from tests.seeds import examples

TOPIC = "persistent://public/default/t-partition-2"
NOW = dt.datetime(2026, 11, 20, tzinfo=dt.UTC)


@pytest.fixture(autouse=True)
def impatient(monkeypatch):
    monkeypatch.setattr(feed_module, "IDLE_SECONDS", 0.02)


def plan_of(split, row_filter=None, losses=()):
    window = Window(NOW, NOW + dt.timedelta(hours=1))
    source = SourceRef("pulsar", "c", (TOPIC,))
    return whole([split], source=source, window=window, filter=row_filter, losses=losses)


def split_of(start, end, *spans):
    return Split(0, TOPIC, Position.of(*start), Position.of(*end), 1, tuple(Span(*span) for span in spans))


def read(fake, split, row_filter=None, *, on_loss="fail", agree=True, **endpoint):
    """Rows as (ledger, entry, batch index, value), and the reader; its receipt agrees with the plan."""
    plan = plan_of(split, row_filter)
    reader = PulsarSplitReader(Endpoint(fake.url, **endpoint), plan, split, on_loss=on_loss)
    rows = [row for batch in reader for row in batch.to_pylist()]
    if agree:
        compare(
            plan,
            [replace(reader.receipt, gaps=(), explained={"gap": sum(g.entries for g in reader.receipt.gaps)})],
            seconds=1,
        )
    return [(row["ledger"], row["entry"], row["batch_index"], row["value"]) for row in rows], reader


def singles(build, *places):
    return [build.Stored(*place, build.metadata(), b"%d:%d" % place) for place in places]


def expected(*places):
    return [(*place, -1, b"%d:%d" % place) for place in places]


TWO_LEDGERS = [(3, 0), (3, 1), (3, 2), (8, 0), (8, 1)]


def test_it_ends_at_the_last_planned_entry_without_asking_for_more(fake_broker, build):
    fake_broker.entries = singles(build, *TWO_LEDGERS, (8, 2), (8, 3))
    rows, reader = read(fake_broker, split_of((3, 0, -1), (8, 2, -1), (3, 0, 3), (8, 0, 2)))
    assert rows == expected(*TWO_LEDGERS)
    receipt = reader.receipt
    assert (receipt.rows, receipt.entries, receipt.gaps, receipt.filtered, receipt.duplicates) == (5, 5, (), 0, 0)
    assert (receipt.first, receipt.last) == (Position.of(3, 0, -1), Position.of(8, 1, -1))
    assert receipt.bytes == 15


def test_it_ends_at_the_first_id_after_its_end(fake_broker, build):
    fake_broker.entries = singles(build, (3, 0), (3, 1), (9, 0))
    rows, reader = read(fake_broker, split_of((3, 0, -1), (3, 3, -1), (3, 0, 3)))
    assert rows == expected((3, 0), (3, 1))
    assert reader.receipt.gaps == (Span(3, 2, 3),)


def test_the_entry_at_its_end_is_not_read_although_the_one_before_is_missing(fake_broker, build):
    fake_broker.entries = singles(build, (3, 0), (3, 1), (3, 3))
    rows, reader = read(fake_broker, split_of((3, 0, -1), (3, 3, -1), (3, 0, 3)))
    assert rows == expected((3, 0), (3, 1))
    assert (reader.receipt.entries, reader.receipt.gaps) == (2, (Span(3, 2, 3),))


def test_it_ends_where_the_broker_has_no_more(fake_broker, build):
    # entries 3:2 and 3:3 are markers: stored, planned, never sent
    fake_broker.entries = singles(build, (3, 0), (3, 1))
    rows, reader = read(fake_broker, split_of((3, 0, -1), (3, 4, -1), (3, 0, 4)))
    assert rows == expected((3, 0), (3, 1))
    assert reader.receipt.gaps == (Span(3, 2, 4),)


def test_it_ends_on_an_empty_topic(fake_broker):
    rows, reader = read(fake_broker, split_of((3, 0, -1), (3, 4, -1), (3, 0, 4)))
    assert rows == []
    assert reader.receipt.gaps == (Span(3, 0, 4),)


def test_it_ends_when_the_rest_was_trimmed_under_it(fake_broker, build):
    # the broker names a last message that it deleted, and moved our cursor over it
    fake_broker.entries = singles(build, (3, 0), (3, 1))
    fake_broker.tail, fake_broker.mark_delete = (3, 9), (3, 9)
    rows, reader = read(fake_broker, split_of((3, 0, -1), (3, 10, -1), (3, 0, 10)))
    assert rows == expected((3, 0), (3, 1))
    assert reader.receipt.gaps == (Span(3, 2, 10),)


def test_it_ends_when_the_broker_says_so(fake_broker, build):
    fake_broker.entries = singles(build, (3, 0))
    fake_broker.tail = (3, 9)
    asked = []

    def last(question):
        asked.append(question)
        tail = pb.CommandGetLastMessageIdResponse(
            last_message_id=build.message_id(3, 9), request_id=question.request_id
        )
        return [tail] if len(asked) == 1 else [tail, pb.CommandReachedEndOfTopic(consumer_id=question.consumer_id)]

    fake_broker.answers[pb.CommandGetLastMessageId] = last
    rows, reader = read(fake_broker, split_of((3, 0, -1), (3, 2, -1), (3, 0, 2)))
    assert rows == expected((3, 0))
    assert reader.receipt.gaps == (Span(3, 1, 2),)


def test_without_spans_it_reads_to_its_end_and_counts(fake_broker, build):
    fake_broker.entries = singles(build, *TWO_LEDGERS)
    rows, reader = read(fake_broker, split_of((3, 1, -1), (8, 1, -1)))
    assert rows == expected(*TWO_LEDGERS[1:4])
    assert (reader.receipt.entries, reader.receipt.gaps) == (3, ())


def test_entries_before_the_start_are_dropped(fake_broker, build):
    # a start past the end makes brokers fall back
    fake_broker.entries = singles(build, *TWO_LEDGERS)
    fake_broker.falls_back = True
    rows, reader = read(fake_broker, split_of((3, 2, -1), (8, 1, -1), (3, 2, 3), (8, 0, 1)))
    assert rows == expected((3, 2), (8, 0))
    assert reader.receipt.duplicates == 0


@pytest.mark.slow_except("0-close", "1-close_consumer", "3-flip")
@pytest.mark.parametrize("what", ["close", "close_consumer", "flip"])
@pytest.mark.parametrize("after", [0, 1, 3, 4])
def test_it_reads_on_at_the_next_entry_after_a_failure(fake_broker, build, what, after):
    fake_broker.entries = singles(build, *TWO_LEDGERS)
    fake_broker.faults.extend([build.Fault(after, what), build.Fault(0, what)])
    rows, reader = read(fake_broker, split_of((3, 0, -1), (8, 2, -1), (3, 0, 3), (8, 0, 2)))
    assert rows == expected(*TWO_LEDGERS)
    assert reader.reconnects == 2
    next_place = (3, 0) if after == 0 else (TWO_LEDGERS[after - 1][0], TWO_LEDGERS[after - 1][1] + 1)
    assert fake_broker.subscriptions() == [(3, 0), next_place, next_place]


def test_what_comes_again_is_dropped_and_counted(fake_broker, build):
    batch = build.Stored(3, 1, build.metadata(num_messages=3), build.batch(b"a", b"b", b"c"))
    fake_broker.entries = [*singles(build, (3, 0)), batch, *singles(build, (3, 2))]
    fake_broker.faults.append(build.Fault(2, "again"))
    rows, reader = read(fake_broker, split_of((3, 0, -1), (3, 3, -1), (3, 0, 3)))
    assert [row[:3] for row in rows] == [(3, 0, -1), (3, 1, 0), (3, 1, 1), (3, 1, 2), (3, 2, -1)]
    assert reader.receipt.duplicates == 4


def test_a_passing_refusal_is_waited_for(fake_broker, build):
    fake_broker.entries = singles(build, (3, 0))
    refusals = [6, 0]
    answer = pb.CommandLookupTopicResponse
    url = fake_broker.url.encode()
    fake_broker.answers[pb.CommandLookupTopic] = lambda asked: [
        answer(response=answer.Failed, request_id=asked.request_id, error=refusals.pop(), message=b"unloading")
        if refusals
        else answer(brokerServiceUrl=url, request_id=asked.request_id)
    ]
    rows, reader = read(fake_broker, split_of((3, 0, -1), (3, 1, -1), (3, 0, 1)))
    assert rows == expected((3, 0))
    assert reader.reconnects == 2


def test_an_entry_that_stays_damaged_fails_the_read(fake_broker, build):
    fake_broker.entries = singles(build, *TWO_LEDGERS)
    fake_broker.faults.extend([build.Fault(2, "flip"), *[build.Fault(0, "flip")] * 5])
    with pytest.raises(CorruptFrame, match=r"3:2"):
        read(fake_broker, split_of((3, 0, -1), (8, 2, -1), (3, 0, 3), (8, 0, 2)))


def test_a_silent_server_is_a_stall_naming_where(fake_broker, build):
    fake_broker.entries = singles(build, *TWO_LEDGERS)
    fake_broker.faults.extend([build.Fault(2, "silence"), *[build.Fault(0, "silence")] * 9])
    with pytest.raises(ReadStalled) as caught:
        read(fake_broker, split_of((3, 0, -1), (8, 2, -1), (3, 0, 3), (8, 0, 2)), stall_seconds=0.4)
    assert caught.value.retryable
    assert fake_broker.subscriptions() == [(3, 0), (3, 2)]
    assert (caught.value.shard, caught.value.at, caught.value.end) == (TOPIC, Position.of(3, 2), Position.of(8, 2, -1))


def test_a_stuck_dispatcher_is_woken_by_a_new_subscription(fake_broker, build):
    fake_broker.entries = singles(build, *TWO_LEDGERS)
    fake_broker.faults.append(build.Fault(2, "silence"))
    rows, _ = read(fake_broker, split_of((3, 0, -1), (8, 2, -1), (3, 0, 3), (8, 0, 2)), stall_seconds=1)
    assert rows == expected(*TWO_LEDGERS)


def test_a_server_that_went_away_is_given_up_in_bounded_time(fake_broker, build):
    fake_broker.entries = singles(build, *TWO_LEDGERS)
    reader = PulsarSplitReader(
        Endpoint(fake_broker.url, stall_seconds=0.3), plan_of(split := split_of((3, 0, -1), (9, 0, -1))), split
    )
    fake_broker.close()
    with pytest.raises(ReadStalled):
        list(reader)


@pytest.mark.parametrize("number", [3, 4])
def test_refusals_end_the_read_at_once(fake_broker, number):
    fake_broker.answers[pb.CommandSubscribe] = lambda asked: [
        pb.CommandError(request_id=asked.request_id, error=number, message=b"no")
    ]
    with pytest.raises(StreamsError) as caught:
        read(fake_broker, split_of((3, 0, -1), (3, 1, -1)))
    assert not caught.value.retryable
    assert len(fake_broker.subscriptions()) == 1


def test_a_topic_that_is_gone_is_lost_events(fake_broker):
    fake_broker.answers[pb.CommandSubscribe] = lambda asked: [
        pb.CommandError(request_id=asked.request_id, error=11, message=b"no topic")
    ]
    with pytest.raises(EventsLost, match="t-partition-2"):
        read(fake_broker, split_of((3, 0, -1), (3, 1, -1)))


def test_a_topic_that_is_gone_is_a_gap_where_losses_are_accepted(fake_broker, build):
    fake_broker.answers[pb.CommandSubscribe] = lambda asked: [
        pb.CommandError(request_id=asked.request_id, error=11, message=b"no topic")
    ]
    split = split_of((3, 0, -1), (3, 2, -1), (3, 0, 2))
    rows, reader = read(fake_broker, split, on_loss="record")
    assert (rows, reader.receipt.gaps) == ([], (Span(3, 0, 2),))


def test_a_topic_that_migrated_says_where_to(fake_broker):
    fake_broker.answers[pb.CommandGetLastMessageId] = lambda _: [
        pb.CommandTopicMigrated(brokerServiceUrl=b"pulsar://blue:6650")
    ]
    with pytest.raises(StreamsError, match="pulsar://blue:6650"):
        read(fake_broker, split_of((3, 0, -1), (3, 1, -1)))


def test_edges_inside_a_batch_part_it_exactly(fake_broker, build):
    values = [b"%d" % number for number in range(5)]
    fake_broker.entries = [build.Stored(3, 0, build.metadata(num_messages=5), build.batch(*values))]
    left, first = read(fake_broker, split_of((3, 0, -1), (3, 0, 2), (3, 0, 1)))
    right, second = read(fake_broker, split_of((3, 0, 2), (3, 1, -1), (3, 0, 1)))
    assert [row[2:] for row in left + right] == list(enumerate(values))
    assert (first.receipt.filtered, second.receipt.filtered) == (3, 2)


def test_a_single_message_lies_before_index_zero_of_its_entry(fake_broker, build):
    fake_broker.entries = singles(build, (3, 0), (3, 1))
    left, _ = read(fake_broker, split_of((3, 0, -1), (3, 1, 0), (3, 0, 2)))
    right, reader = read(fake_broker, split_of((3, 1, 0), (3, 2, -1), (3, 1, 2)))
    assert (left, right) == (expected((3, 0), (3, 1)), [])
    assert reader.receipt.filtered == 1


def test_the_filter_keeps_whole_entries_by_publish_time(fake_broker, build):
    batch = build.batch(b"a", b"b")
    fake_broker.entries = [
        build.Stored(3, number, build.metadata(ms, num_messages=2), batch)
        for number, ms in enumerate((99, 100, 199, 200))
    ]
    split = split_of((3, 0, -1), (3, 4, -1), (3, 0, 4))
    rows, reader = read(fake_broker, split, RowFilter("publish_time", 100, 200))
    assert [row[:3] for row in rows] == [(3, 1, 0), (3, 1, 1), (3, 2, 0), (3, 2, 1)]
    assert (reader.receipt.filtered, reader.receipt.entries) == (4, 4)


def test_the_filter_may_use_the_brokers_clock(fake_broker, build):
    fake_broker.entries = [
        build.Stored(3, number, build.metadata(5), b"x", BrokerEntry(ms, number))
        for number, ms in enumerate((99, 100, 200))
    ]
    split = split_of((3, 0, -1), (3, 3, -1), (3, 0, 3))
    rows, _ = read(fake_broker, split, RowFilter("broker_time", 100, 200))
    assert [row[:2] for row in rows] == [(3, 1)]
    fake_broker.entries = singles(build, (3, 0))
    with pytest.raises(InvalidRequest, match="broker time"):
        read(fake_broker, split, RowFilter("broker_time", 100, 200))


def timed_batch(*event_ms):
    """A batch of one message for each time, its number in the batch as value; 0: without one."""
    parts = []
    for number, moment in enumerate(event_ms):
        value = b"%d" % number
        header = usual([(3, len(value)), *([(5, moment)] if moment else [])])
        parts.append(struct.pack(">I", len(header)) + header + value)
    return b"".join(parts)


def test_the_filter_keeps_messages_by_their_own_event_times_and_others_by_publish_time(fake_broker, build):
    fake_broker.entries = [
        # of a batch the messages' own times count, whatever the entry says
        build.Stored(3, 0, build.metadata(150, num_messages=5, event_ms=150), timed_batch(99, 100, 0, 199, 200)),
        build.Stored(3, 1, build.metadata(250, num_messages=2), timed_batch(0, 120)),
        build.Stored(3, 2, build.metadata(250, event_ms=199), b"single"),
        build.Stored(3, 3, build.metadata(150, event_ms=200), b"single"),
        build.Stored(3, 4, build.metadata(150), b"single"),
        build.Stored(3, 5, build.metadata(99), b"single"),
    ]
    split = split_of((3, 0, -1), (3, 6, -1), (3, 0, 6))
    rows, reader = read(fake_broker, split, RowFilter("event_time", 100, 200))
    assert [row[:3] for row in rows] == [(3, 0, 1), (3, 0, 2), (3, 0, 3), (3, 1, 1), (3, 2, -1), (3, 4, -1)]
    receipt = reader.receipt
    assert (receipt.rows, receipt.filtered, receipt.untimed, receipt.entries) == (6, 5, 2, 6)
    assert receipt.bytes == sum(len(row[3]) for row in rows)


def test_an_event_time_that_no_column_can_hold_is_in_no_window(fake_broker, build):
    """Where `event_time` is a column it is refused only if it is the window's."""
    fake_broker.entries = [build.Stored(3, 0, build.metadata(150, num_messages=2), timed_batch(1 << 62, 150))]
    split = split_of((3, 0, -1), (3, 1, -1), (3, 0, 1))
    rows, _ = read(fake_broker, split, RowFilter("event_time", 100, 200))
    assert [row[:3] for row in rows] == [(3, 0, 1)]


def test_rows_of_a_decoded_field_are_filtered_where_it_is_decoded(fake_broker, build):
    fake_broker.entries = singles(build, (3, 0), (3, 1))
    split = split_of((3, 0, -1), (3, 2, -1), (3, 0, 2))
    rows, reader = read(fake_broker, split, FieldFilter("created_at", 1, 2))
    assert (len(rows), reader.receipt.filtered) == (2, 0)


def test_a_filter_on_another_time_is_refused():
    split = split_of((3, 0, -1), (3, 3, -1))
    with pytest.raises(InvalidRequest, match="not by created_at"):
        PulsarSplitReader(Endpoint("pulsar://x"), plan_of(split, RowFilter("created_at", 1, 2)), split)


def test_encrypted_entries_name_topic_and_entry(fake_broker, build):
    fake_broker.entries = [build.Stored(3, 0, build.metadata(encryption=b"\x0a\x01k\x12\x01v"), b"x")]
    with pytest.raises(InvalidRequest, match=r"t-partition-2: entry 3:0 is encrypted"):
        read(fake_broker, split_of((3, 0, -1), (3, 1, -1)))


def chunks(build, ledger, first, *parts, uuid=b"u"):
    size = sum(map(len, parts))
    return [
        build.Stored(
            ledger,
            first + number,
            build.metadata(uuid=uuid, chunk_id=number, num_chunks=len(parts), total_size=size),
            part,
        )
        for number, part in enumerate(parts)
    ]


@given(cut=st.integers(0, 6))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=examples(7), deadline=None)
def test_a_chunked_message_belongs_to_the_split_with_its_last_chunk(fake_brokers, build, cut):
    fake = fake_brokers(
        entries=[*singles(build, (3, 0)), *chunks(build, 3, 1, b"a", b"b", b"c", b"d"), *singles(build, (3, 5))]
    )
    fake.mark_delete = (3, -1)
    left, right = [], []
    if cut:
        left, _ = read(fake, split_of((3, 0, -1), (3, cut, -1), (3, 0, cut)))
    if cut < 6:
        right, _ = read(fake, split_of((3, cut, -1), (3, 6, -1), (3, cut, 6)))
    assert left + right == [(3, 0, -1, b"3:0"), (3, 4, -1, b"abcd"), (3, 5, -1, b"3:5")]


def test_first_chunks_in_an_earlier_ledger_are_found(fake_broker, build):
    parts = chunks(build, 3, 0, b"a", b"b", b"c", b"d")
    fake_broker.entries = [
        *singles(build, (1, 0)),
        replace(parts[0], ledger=1, entry=1),
        *[replace(p, ledger=3, entry=p.entry - 1) for p in parts[1:]],
    ]
    marks = {(3, 0): (1, 1), (1, 0): (1, -1)}

    def last(asked):
        before = marks.get(fake_broker.subscriptions()[-1], (1, -1))
        return [
            pb.CommandGetLastMessageIdResponse(
                last_message_id=build.message_id(3, 2),
                request_id=asked.request_id,
                consumer_mark_delete_position=build.message_id(*before),
            )
        ]

    fake_broker.answers[pb.CommandGetLastMessageId] = last
    rows, _ = read(fake_broker, split_of((3, 1, -1), (3, 3, -1), (3, 1, 3)))
    assert rows == [(3, 2, -1, b"abcd")]


def test_first_chunks_that_are_gone_are_lost_events_or_recorded(fake_broker, build):
    fake_broker.entries = [*chunks(build, 3, 0, b"a", b"b", b"c")[1:], *singles(build, (3, 3))]
    fake_broker.mark_delete = (3, -1)
    split = split_of((3, 1, -1), (3, 4, -1), (3, 1, 4))
    with pytest.raises(EventsLost, match="chunks"):
        read(fake_broker, split)
    rows, reader = read(fake_broker, split, on_loss="record", agree=False)
    assert rows == expected((3, 3))
    assert (reader.receipt.entries, reader.receipt.explained) == (1, {"lost": 2})
    assert compare(plan_of(split), [reader.receipt], seconds=1).verdict == "loss recorded"


def test_a_message_unfinished_at_the_end_is_no_row_here(fake_broker, build):
    fake_broker.entries = [*singles(build, (3, 0)), *chunks(build, 3, 1, b"a", b"b", b"c")]
    rows, reader = read(fake_broker, split_of((3, 0, -1), (3, 3, -1), (3, 0, 3)))
    assert rows == expected((3, 0))
    assert reader.receipt.entries == 3


def test_a_dropped_entry_fails_the_comparison(fake_broker, build):
    fake_broker.entries = singles(build, (3, 0), (3, 2))
    split = split_of((3, 0, -1), (3, 3, -1), (3, 0, 3))
    _, reader = read(fake_broker, split)
    with pytest.raises(ReceiptMismatch, match="never seen"):
        compare(plan_of(split), [reader.receipt], seconds=1)


def test_batches_are_bounded_however_large_the_window(fake_broker, build):
    values = [b"x" * 20] * 1000
    entry = build.Stored(3, 0, build.metadata(num_messages=1000), build.batch(*values))
    fake_broker.entries = [replace(entry, entry=number) for number in range(120)]
    split = split_of((3, 0, -1), (3, 120, -1), (3, 0, 120))
    reader = PulsarSplitReader(Endpoint(fake_broker.url), plan_of(split), split, ["value"])
    sizes = [batch.num_rows for batch in reader]
    assert (sum(sizes), reader.receipt.rows) == (120_000, 120_000)
    assert max(sizes) <= 20_000


def test_closing_in_the_middle_leaves_no_connection(fake_broker, build):
    fake_broker.entries = singles(build, *((3, number) for number in range(10_000)))
    split = split_of((3, 0, -1), (3, 10_000, -1), (3, 0, 10_000))
    reader = PulsarSplitReader(Endpoint(fake_broker.url), plan_of(split), split)
    iterator = iter(reader)
    next(iterator)
    reader.close()
    reader.close()
    assert list(iterator) is not None
    assert not reader._feed._client._connections


def test_a_reader_that_is_never_read_connects_to_nothing(fake_broker):
    split = split_of((3, 0, -1), (3, 1, -1))
    reader = PulsarSplitReader(Endpoint(fake_broker.url), plan_of(split), split)
    reader.close()
    assert list(reader) == []
    assert not fake_broker.heard
