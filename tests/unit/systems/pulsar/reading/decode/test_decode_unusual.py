"""Legal headers that no client writes, some made to mislead: what they say is read, and never something else."""

from __future__ import annotations

import random
import struct

import pytest

from airflow_provider_streams.systems.pulsar.column_names import DEFAULT_COLUMN_NAMES
from tests.fuzz.compare import COMPARED, check_equal, check_refused, decoder_of, theirs
from tests.fuzz.plain import Stored
from tests.fuzz.writer import usual, varint

PUBLISHED = (3, 1_763_700_000_123)
COLUMNS = tuple(name for name in DEFAULT_COLUMN_NAMES if name in COMPARED)


def message(header, value):
    return struct.pack(">I", len(header)) + header + value


def size(value):
    return b"\x18" + varint(len(value))


def text(tag, data, more=0):
    """A length-delimited field whose length takes so many bytes more than it needs."""
    return bytes([tag]) + varint(len(data), more) + data


def batch(*messages, entry=0):
    head = usual([(1, b"p"), PUBLISHED, (11, len(messages))])
    return Stored(7, entry, None, head, b"".join(messages))


def usual_message(number, value=b"value"):
    return message(text(0x0A, text(0x0A, b"name") + text(0x12, b"%d" % number)) + size(value), value)


PAIRS = {
    "value first": text(0x12, b"0123456789abcdef") + text(0x0A, b"n"),
    "name twice": text(0x0A, b"a") + text(0x12, b"xyz") + text(0x0A, b"b"),
    "value twice": text(0x0A, b"a") + text(0x12, b"old") + text(0x12, b"new"),
    "no value": text(0x0A, b"a"),
    "no name": text(0x12, b"v"),
    "nothing": b"",
    "long lengths": text(0x0A, b"a", 9) + text(0x12, b"v", 8),
    "an unknown field": text(0x0A, b"a") + b"\x1d1234" + text(0x12, b"v"),
    "a long tag": b"\x8a\x80\x80\0" + b"\x01a" + text(0x12, b"v"),
}


@pytest.mark.parametrize("pair", PAIRS.values(), ids=PAIRS)
@pytest.mark.parametrize("count", [1, 3, 80])
def test_properties_in_any_encoding_hold_nothing_but_their_own_bytes(pair, count):
    secret = batch(message(size(b"s" * 90), b"SECRET-OF-ANOTHER-ENTRY" + b"s" * 67))
    odd = message(text(0x0A, pair) + size(b"val"), b"val")
    messages = [usual_message(number) for number in range(count)]
    messages[count // 2] = odd
    rows, _ = check_equal([secret, batch(*messages, entry=1)], COMPARED)
    assert rows == 1 + count


LONG = {"properties": b"\x0a", "key": b"\x12", "ordering key": b"\x3a"}


@pytest.mark.parametrize("more", [0, 1, 9, *(pytest.param(n, marks=pytest.mark.slow) for n in range(2, 9))])
@pytest.mark.parametrize("tag", LONG.values(), ids=LONG)
def test_lengths_may_be_padded(tag, more):
    def padded(number):
        data = text(0x0A, b"n") + text(0x12, b"%06d" % number)
        return message(text(tag[0], data, more) + size(b"v%06d" % number), b"v%06d" % number)

    for count in (1, 40, 400):
        check_equal([batch(*map(padded, range(count)))] * 40, COMPARED)


def test_messages_are_cut_where_a_padded_length_says_and_not_a_byte_earlier():
    """All messages have one size; read a byte too early, the second one ends at another place that also looks right."""
    step, header, pair = 121, 93, 40
    length = struct.pack(">I", header)

    def value_pair(last):
        return b"\x0a\x01a\x12\x23" + b"." * 34 + last

    def plain(number):
        head = b"\x0a" + bytes([pair | 0x80, 0]) + value_pair(b".") + b"\x18\x18" + text(0x3A, b"o" * 46)
        return length + head + (b"value of message %06d" % number).ljust(24, b".")

    long = b"\x0a" + bytes([pair | 0x80]) + b"\x80" * 7 + b"\0" + value_pair(b"\x18") + b"\x18\x3a\x28\x05"
    first = length + long + text(0x7A, b"u" * 37) + b"true value of message 1:"
    early = step - 34 - 4 - 2
    second = bytearray(length + b"\x0a" + bytes([pair | 0x80, 0]) + b"p" * pair + b"\x18\x18" + text(0x3A, b"o" * 46))
    second[34:40] = struct.pack(">I", 2) + b"\x18" + bytes([early])
    messages = [plain(0), first, bytes(second) + b"FORGED VALUE OF MESSAGE2", *map(plain, range(3, 64))]
    assert {len(each) for each in messages} == {step}
    entry = batch(*messages)
    check_equal([entry], COLUMNS)
    assert b"FORGED VALUE OF MESSAGE2" not in theirs([entry], ["value"])["value"].to_pylist()


def misleading(count):
    """Messages of many sizes, among them one whose key's length is padded; a byte too early, others seem to follow."""
    dice = random.Random(5)  # noqa: S311 - a seed
    key = b"K" * 19 + b"\x18"
    head = b"\x12" + bytes([20 | 0x80]) + b"\x80" * 7 + b"\0" + key + b"\x18\x3a\x28\x05" + text(0x7A, b"u" * 37)
    padding = bytearray(b"o" * (20 + 130 + 3 - len(head) + 4))
    at = 20 + 130 - len(head) - 2
    padding[at + 1 : at + 3] = b"\x18\x00"
    head += text(0x3A, bytes(padding))
    forged = bytearray(message(b"\x12\x28" + b"P" * 40 + b"\x18\x40", b"FORGED VALUE OF MESSAGE B".ljust(64, b"!")))
    forged[34:40] = struct.pack(">I", 2) + b"\x18" + bytes([len(forged) - 40])
    others = [dice.randbytes(dice.randrange(5, 60)) for _ in range(count - 2)]
    messages = [message(size(value), value) for value in others]
    messages.insert(count // 3, message(head, b"true value of message A:") + bytes(forged))
    head = usual([(1, b"p"), PUBLISHED, (11, count)])
    return Stored(7, 0, None, head, b"".join(messages))


@pytest.mark.parametrize("entries", [1, 300])
def test_messages_of_many_sizes_are_cut_where_a_padded_length_says(entries):
    entry = misleading(200)
    check_equal([entry] * entries, COLUMNS)
    assert b"FORGED VALUE OF MESSAGE B!" not in b" ".join(theirs([entry], ["value"])["value"].to_pylist()[:67])


HEADERS = {
    "the size at the end": [(8, 5), (2, b"key"), (3, 3)],
    "the size twice": [(3, 300), (8, 1), (3, 3)],
    "the key after the size": [(3, 3), (2, b"key")],
    "two keys": [(2, b"old"), (2, b"new"), (3, 3)],
    "two keys around the size": [(2, b"old"), (3, 3), (2, b"new")],
    "a key although it is said to be null": [(10, 1), (2, b"key"), (3, 3)],
    "null and not null": [(3, 3), (9, 1), (9, 0)],
    "not null and null": [(3, 3), (9, 0), (9, 2)],
    "compacted out, or not": [(4, 1), (3, 3), (4, 0)],
    "a size with more bits": [(3, (7 << 32) + 3)],
    "properties at the end": [(3, 3), (1, [(1, b"n"), (2, b"v")]), (8, 1), (1, [(1, b"m"), (2, b"w")])],
    "the greatest numbers": [(3, 3), (5, 1 << 49), (8, (1 << 64) - 1)],
    "negative times": [(3, 3), (5, -1), (8, -1)],
    "a hundred properties": [*[(1, [(1, b"n%d" % n), (2, b"v")]) for n in range(100)], (3, 3)],
    "a hundred unknown fields": [(3, 3), *[(11, n) for n in range(100)], (8, 7)],
    "a known number with another type": [(2, 7), (3, b"text"), (3, 3), (8, b"text"), (8, 4)],
}


@pytest.mark.parametrize("fields", HEADERS.values(), ids=HEADERS)
def test_fields_come_in_any_order_and_the_last_one_counts(fields):
    odd = message(usual(fields), b"val")
    for count in (1, 3, 100):
        messages = [usual_message(number) for number in range(count)]
        messages[count // 2] = odd
        check_equal([batch(*messages)], COMPARED)
        check_equal([batch(*[odd] * count)], COMPARED)


GROUPS = {
    "a group": b"\x5b\x08\x01\x5c",
    "groups in groups": b"\x5b\x63\x0a\x02ab\x64\x5d1234\x5c",
    "a group with the number of the key": b"\x13\x0a\x01x\x14",
    "an eight-byte number": b"\x59" + bytes(8),
    "the greatest number of a field": varint(((1 << 29) - 1) << 3) + b"\x05",
}


@pytest.mark.parametrize("unknown", GROUPS.values(), ids=GROUPS)
@pytest.mark.parametrize("at_end", [False, True])
def test_unknown_fields_of_every_kind_are_skipped(unknown, at_end):
    known = text(0x12, b"key") + size(b"val")
    odd = message(known + unknown if at_end else unknown + known, b"val")
    check_equal([batch(odd), batch(*[usual_message(n) for n in range(50)], odd, entry=1)], COMPARED)


BROKEN = {
    "a negative length": size(b"v") + b"\x3a" + varint(-3),
    "a length that leads back": size(b"v") + b"\x3a" + varint(-(1 << 62)),
    "a size beyond every batch": b"\x18" + varint(1 << 63),
    "a size of 2**31": b"\x18" + varint(1 << 31),
    "a negative size": b"\x18" + varint(-1),
    "a property of 2**62 bytes": size(b"v") + b"\x0a" + varint(1 << 62),
    "a property of 2 GiB": size(b"v") + b"\x0a" + varint(2 << 30),
    "a field without a number": size(b"v") + b"\x00\x01",
    "a fixed field without a number": size(b"v") + b"\x01" + bytes(8),
    "a tag of more than 32 bits": size(b"v") + varint((1 << 32) + (11 << 3)) + b"\x01",
    "a varint of eleven bytes": size(b"v") + b"\x40" + b"\x80" * 10 + b"\x01",
    "a group that does not end": size(b"v") + b"\x5b",
    "a group that ends as another": size(b"v") + b"\x5b\x64",
    "an end without a group": size(b"v") + b"\x5c",
    "groups nested beyond measure": size(b"v") + b"\x5b" * 200 + b"\x5c" * 200,
    "wire type 6": size(b"v") + b"\x5e\x01",
    "no size": b"\x40\x01",
    "nothing": b"",
}


@pytest.mark.parametrize("header", BROKEN.values(), ids=BROKEN)
@pytest.mark.parametrize("count", [1, 2, 40, 100])
def test_what_is_no_header_is_refused_by_the_name_of_its_entry(header, count):
    good = [usual_message(number, b"v") for number in range(count)]
    for place in {0, count // 2, count - 1}:
        messages = [*good[:place], message(header, b"v"), *good[place + 1 :]]
        check_refused(batch(*messages, entry=5), [batch(*good, entry=n) for n in range(4)], decoder_of(COMPARED))
        check_refused(batch(*messages, entry=5), [], decoder_of(COLUMNS))
    check_refused(batch(*[message(header, b"v")] * count, entry=5), [], decoder_of(["value"]))


def test_a_time_that_no_timestamp_can_hold_is_refused_only_where_it_is_asked_for():
    huge = message(size(b"val") + b"\x28" + varint(1 << 62), b"val")
    entry = batch(usual_message(1), huge, usual_message(2))
    check_equal([entry], ["value", "key"])
    why = check_refused(entry, [], decoder_of(["value", "event_time"]))
    assert "message 1 of its batch has the event_time 4611686018427387904 ms, which no timestamp" in str(why)
    # outside of what is asked for, it does not matter
    check_equal([entry], ["value", "event_time"], (0, 1))


@pytest.mark.parametrize("millis", [-1, -(1 << 40), 1 << 62, -(1 << 63)])
def test_publish_times_may_be_any_number(millis):
    entry = Stored(7, 0, None, usual([(1, b"p"), (3, millis)]), b"value")
    check_equal([entry], ["value"])
    if abs(millis) < 1 << 49:
        check_equal([entry], ["publish_time"])
    else:
        assert f"its message has the publish_time {millis} ms" in str(
            check_refused(entry, [], decoder_of(["publish_time"]))
        )


def test_indexes_of_a_compaction_that_are_not_a_batchs_move_no_other_index():
    single = Stored(7, 0, None, usual([(1, b"p"), PUBLISHED, (31, 5), (31, 6)]), b"value")
    check_equal([single, batch(*[usual_message(n) for n in range(3)], entry=1)], COMPARED)


def test_a_message_without_a_batch_keeps_its_properties_however_they_are_written():
    for number, pair in enumerate(PAIRS.values()):
        head = usual([(1, b"p"), PUBLISHED]) + text(0x22, pair) + text(0x22, pair, 3)
        check_equal([Stored(7, number, None, head, b"value")], COMPARED)
