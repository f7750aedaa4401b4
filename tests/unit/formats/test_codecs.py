"""What compressed an event's body: undone within limits, whatever the bytes claim."""

from __future__ import annotations

import gzip as gzip_module
import sys
import types
import zlib

import pyarrow as pa
import pytest

from airflow_provider_streams.errors import InvalidSchema
from airflow_provider_streams.formats import reader_selection
from airflow_provider_streams.formats.codecs import (
    LEAST_ROOM,
    MOST_ROOM,
    TooMuch,
    codec,
    gzip,
    lz4,
    room,
    snappy,
)
from airflow_provider_streams.formats.decode_failures import Causes
from airflow_provider_streams.formats.reader_selection import reader_of
from airflow_provider_streams.model.schema.decoding import WriterSchema

LZ4 = "airflow_provider_streams.formats.codecs:lz4"


def compressed(name, data):
    if name == "gzip":
        return gzip_module.compress(data)
    return pa.compress(data, codec="snappy" if name == "snappy" else "lz4", asbytes=True)


def read(name, *payloads):
    causes = Causes()
    values, codes = reader_of(WriterSchema("utf8", codec=name), causes).read(pa.array(payloads, pa.binary()))
    return values.to_pylist(), [causes.text(code) for code in codes.tolist()]


@pytest.mark.parametrize("name", ["gzip", "snappy", LZ4])
def test_events_come_back_and_broken_ones_are_bad_rows(name):
    good = [compressed(name, text.encode()) for text in ("", "a", "hello" * 2000)]
    values, causes = read(name, *good, good[2][:-5], b"", b"\xff" * 20, good[1])
    assert [values[place] for place in (0, 1, 2, 6)] == ["", "a", "hello" * 2000, "a"]
    assert [bool(cause) for cause in causes] == [False] * 3 + [True] * 3 + [False]
    assert set(causes[3:6]) == {f"the codec {name} cannot undo it"}


@pytest.mark.parametrize("name", ["gzip", LZ4])
def test_a_bomb_is_a_bad_row_and_costs_no_more_than_its_room(name):
    bomb = compressed(name, bytes(100 << 20))
    if name == LZ4:
        assert room(len(bomb)) == MOST_ROOM
    with pytest.raises(TooMuch):
        codec(name)(bomb, room(len(bomb)))
    values, causes = read(name, bomb, compressed(name, b"fine"))
    assert values[1] == "fine"
    assert "too large" in causes[0]


def test_a_size_that_snappy_claims_is_not_believed():
    with pytest.raises(TooMuch):
        snappy(b"\xff\xff\xff\xff\x0f\x00", LEAST_ROOM)
    with pytest.raises(OSError, match="snappy"):
        snappy(b"\x80\x80\x02\x00", LEAST_ROOM)
    for broken in (b"\xff" * 12, b"\x80", b""):
        with pytest.raises(ValueError, match="size"):
            snappy(broken, LEAST_ROOM)


def test_gzip_has_one_member_or_more_and_nothing_else():
    two = gzip_module.compress(b"one") + gzip_module.compress(b"two")
    assert gzip(two, 100) == b"onetwo"
    with pytest.raises(TooMuch):
        gzip(two, 5)
    for broken in (two + b"x", two[:-1], b""):
        with pytest.raises((ValueError, zlib.error), match=r"gzip|header"):
            gzip(broken, 100)


def test_the_room_of_a_payload():
    assert room(0) == LEAST_ROOM
    assert room(10_000) == 2_500_000
    assert room(1 << 30) == MOST_ROOM


def test_lz4_is_bounded():
    with pytest.raises(TooMuch):
        lz4(compressed(LZ4, b"x" * 101), 100)


def test_a_codec_of_the_users_own_is_a_function_by_its_path(monkeypatch):
    module = types.ModuleType("a_codec_of_ours")
    module.reversed_ = lambda data: data[::-1]
    monkeypatch.setitem(sys.modules, "a_codec_of_ours", module)
    values, causes = read("a_codec_of_ours:reversed_", b"olleh", b"\xff")
    assert values[0] == "hello"
    assert causes[1] == "it is not UTF-8"
    module.large = lambda _: bytes(LEAST_ROOM + 1)
    assert "too large" in read("a_codec_of_ours:large", b"x")[1][0]
    module.raises = lambda _: 1 / 0
    assert "cannot undo" in read("a_codec_of_ours:raises", b"x")[1][0]


@pytest.mark.parametrize("name", ["lz4", "no_such_module:codec", "json:no_such_function", ":", "zstd"])
def test_a_codec_that_is_not_there_is_refused_at_once(name):
    with pytest.raises(InvalidSchema, match="codec"):
        reader_of(WriterSchema("utf8", codec=name), Causes())


def test_many_events_are_read_so_many_bytes_at_a_time_and_a_batch_has_an_end(monkeypatch):
    texts = [str(number).encode() * 100 for number in range(50)]
    events = [compressed("gzip", text) for text in texts]
    events[7] = b"broken"
    whole = read("gzip", *events)
    for at_a_time in (1, 150, 1000):
        monkeypatch.setattr(reader_selection, "MOST_AT_A_TIME", at_a_time)
        assert read("gzip", *events) == whole
    monkeypatch.setattr(reader_selection, "MOST_OF_BATCH", 1000)
    values, causes = read("gzip", *events)
    taken = [value for value, cause in zip(values, causes, strict=True) if not cause]
    assert sum(map(len, taken)) <= 1000
    assert "1 GiB of a batch" in causes[20]


def test_a_batch_of_nothing_that_can_be_undone():
    assert read("gzip", b"x", b"y")[0] == [None, None]
    assert read("gzip") == ([], [])
