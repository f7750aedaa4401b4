"""A reader decodes one group while the next one comes: what that may not change."""

from __future__ import annotations

import threading

import pytest

from airflow_provider_streams.background_work import BackgroundWork
from airflow_provider_streams.errors import CorruptFrame
from airflow_provider_streams.systems.pulsar.client.endpoint import Endpoint
from airflow_provider_streams.systems.pulsar.client.wire.frames import RawEntry
from airflow_provider_streams.systems.pulsar.reading import reader as reader_module
from airflow_provider_streams.systems.pulsar.reading.decode.headers.message_metadata import parse_metadata
from airflow_provider_streams.systems.pulsar.reading.reader import PulsarSplitReader
from tests.unit.systems.pulsar.reading.test_reader import plan_of, split_of

LONG = 20


class Entries:
    """Instead of a feed: entry after entry; `came` is called with the number of each."""

    duplicates = reconnects = 0

    def __init__(self, build, count, came=lambda _: None, damaged=None):
        self.build, self.count, self.came, self.damaged = build, count, came, damaged

    def __iter__(self):
        for number in range(self.count):
            self.came(number)
            header = self.build.metadata(number, num_messages=1)
            payload = b"?" * 20 if number == self.damaged else self.build.batch(b"%d" % number)
            yield [(RawEntry(1, 3, number, None, memoryview(header), memoryview(payload)), parse_metadata(header))]

    def close(self):
        pass


@pytest.fixture
def reader_of(monkeypatch):
    """Of a feed; each of its entries is a group."""
    monkeypatch.setattr(reader_module, "FLUSH_ENTRIES", 1)

    def make(feed):
        split = split_of((3, 0, -1), (3, feed.count, -1), (3, 0, feed.count))
        reader = PulsarSplitReader(Endpoint("pulsar://nowhere"), plan_of(split), split, ["value"])
        reader._feed = feed
        return reader

    return make


@pytest.fixture
def decoding(monkeypatch):
    """Call `decoding(act)` for `act()` to happen wherever a group is decoded."""
    decode = reader_module.Decoder.decode

    def watch(act):
        def watched(decoder, taken):
            act()
            return decode(decoder, taken)

        monkeypatch.setattr(reader_module.Decoder, "decode", watched)

    return watch


def values(reader):
    return [value for batch in reader for value in batch["value"].to_pylist()]


def running():
    return [thread for thread in threading.enumerate() if thread.name == "streams-background"]


def test_the_next_group_comes_while_one_is_decoded(build, reader_of, decoding):
    second_comes = threading.Event()
    in_time = []
    decoding(lambda: in_time.append(second_comes.wait(LONG)))
    reader = reader_of(Entries(build, 2, came=lambda number: number == 1 and second_comes.set()))
    assert values(reader) == [b"0", b"1"]
    assert in_time[0]


def test_groups_keep_their_order_and_the_receipt_counts_them_all(build, reader_of):
    reader = reader_of(Entries(build, 50))
    assert values(reader) == [b"%d" % number for number in range(50)]
    assert (reader.receipt.rows, reader.receipt.entries, reader.receipt.gaps) == (50, 50, ())


def test_one_group_is_decoded_at_a_time_and_one_more_collected(build, reader_of, decoding):
    came, decoded = [], []
    decoding(lambda: decoded.append((len(running()), len(came) - len(decoded))))
    values(reader_of(Entries(build, 30, came=came.append)))
    assert max(threads for threads, _ in decoded) == 1
    assert max(waiting for _, waiting in decoded) <= 2


@pytest.mark.parametrize("damaged", [0, 1, 4])
def test_a_damaged_group_fails_the_read_and_no_row_after_it_is_given(build, reader_of, damaged):
    reader = reader_of(Entries(build, 5, damaged=damaged))
    given = []
    with pytest.raises(CorruptFrame, match=f"3:{damaged}"):
        given.extend(batch["value"].to_pylist() for batch in reader)
    assert given == [[b"%d" % number] for number in range(damaged)]
    assert not running()


def test_no_thread_is_left_when_a_reader_is_closed_in_the_middle(build, reader_of, decoding):
    groups, may_decode = [], threading.Event()

    def hold_the_second():
        groups.append(1)
        if len(groups) > 1:
            may_decode.wait(LONG)

    decoding(hold_the_second)
    reader = reader_of(Entries(build, 9))
    iterator = iter(reader)
    next(iterator)
    assert len(running()) == 1
    threading.Timer(0.05, may_decode.set).start()
    reader.close()
    assert not running()
    iterator.close()


def test_no_thread_is_left_when_an_iteration_is_dropped(build, reader_of):
    iterator = iter(reader_of(Entries(build, 9)))
    next(iterator)
    iterator.close()
    assert not running()


def test_a_single_group_needs_no_thread(build, reader_of, decoding):
    names = []
    decoding(lambda: names.append(threading.current_thread().name))
    assert values(reader_of(Entries(build, 1))) == [b"0"]
    assert names == [threading.current_thread().name]


def test_an_error_of_background_work_is_raised_where_its_result_is_asked_for():
    work = BackgroundWork(lambda: 1 // 0)
    work.wait()
    with pytest.raises(ZeroDivisionError):
        work.result()
