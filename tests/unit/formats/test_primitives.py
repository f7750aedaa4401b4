"""Payloads of one value each: the widths and limits of Pulsar's primitives, and text."""

from __future__ import annotations

import datetime as dt
import math
import struct

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from airflow_provider_streams.formats.arrow.arrays import as_text
from airflow_provider_streams.formats.arrow.arrow_types import arrow_type
from airflow_provider_streams.formats.decode_failures import Causes
from airflow_provider_streams.formats.reader_selection import reader_of
from airflow_provider_streams.model.schema.decoding import PRIMITIVES, WriterSchema
from tests.seeds import examples

INTEGERS = {"int8": ">b", "int16": ">h", "int32": ">i", "int64": ">q"}
WIDTHS = {
    "boolean": 1, "int8": 1, "int16": 2, "int32": 4, "int64": 8, "float": 4, "double": 8, "date": 8, "time": 8,
    "timestamp": 8, "instant": 12, "local_date": 8, "local_time": 8, "local_date_time": 16,
}  # fmt: skip


def read(format_, *payloads):
    causes = Causes()
    reader = reader_of(WriterSchema(format_), causes)
    values, codes = reader.read(pa.array(payloads, pa.binary()))
    assert values.type == arrow_type(reader.type)
    values.validate(full=True)
    return [None if code else value for value, code in zip(values.to_pylist(), codes.tolist(), strict=True)]


@pytest.mark.parametrize("format_", INTEGERS)
@given(numbers=st.lists(st.integers(-(1 << 63), (1 << 63) - 1), min_size=1))
@settings(max_examples=examples(20))
def test_integers(format_, numbers):
    bits = 8 * WIDTHS[format_]
    numbers = [(number + (1 << (bits - 1))) % (1 << bits) - (1 << (bits - 1)) for number in numbers]
    assert read(format_, *[struct.pack(INTEGERS[format_], number) for number in numbers]) == numbers


@pytest.mark.parametrize("format_", PRIMITIVES)
def test_another_length_is_a_bad_row_among_good_ones(format_):
    width = WIDTHS[format_]
    found = read(format_, bytes(width), bytes(width - 1), b"", bytes(width + 1), bytes(width))
    assert [one is None for one in found] == [False, True, True, True, False]
    assert found[0] == found[4]


def test_booleans_are_one_or_zero():
    assert read("boolean", b"\1", b"\0", b"\2", b"\xff") == [True, False, None, None]


def test_floats_keep_nan_and_the_sign_of_zero():
    found = read("double", *[struct.pack(">d", number) for number in (-0.0, math.nan, math.inf, 5e-324)])
    assert math.copysign(1, found[0]) == -1
    assert math.isnan(found[1])
    assert found[2:] == [math.inf, 5e-324]
    assert read("float", struct.pack(">f", 0.1)) == [struct.unpack(">f", struct.pack(">f", 0.1))[0]]


@pytest.mark.parametrize("format_", ["date", "time", "timestamp"])
def test_javas_dates_and_times_are_moments_to_the_millisecond(format_):
    first, last = -62_135_596_800_000, 253_402_300_799_999
    found = read(format_, *[struct.pack(">q", ms) for ms in (0, -1, first, last, first - 1, last + 1, 1 << 62)])
    zero = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
    assert found[:2] == [zero, zero - dt.timedelta(milliseconds=1)]
    assert [one.year for one in found[2:4]] == [1, 9999]
    assert found[4:] == [None] * 3


def test_instants_are_cut_to_microseconds():
    second = struct.pack(">q", 1_700_000_000)
    parts = [struct.pack(">i", nanos) for nanos in (0, 999_999_999, 1_000_000_000, -1)]
    before = struct.pack(">qi", -1, 999_999_999)
    found = read("instant", *[second + part for part in parts], before, struct.pack(">qi", 1 << 60, 0))
    moment = dt.datetime(2023, 11, 14, 22, 13, 20, tzinfo=dt.UTC)
    epoch = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
    assert found == [
        moment, moment + dt.timedelta(microseconds=999_999), None, None, epoch - dt.timedelta(microseconds=1), None,
    ]  # fmt: skip


def test_local_dates_and_times():
    assert read("local_date", struct.pack(">q", 20_000), struct.pack(">q", 1 << 40)) == [dt.date(2024, 10, 4), None]
    nanos = 86_400_000_000_000
    assert read("local_time", *[struct.pack(">q", one) for one in (1_000, nanos, -1)]) == [
        dt.time(microsecond=1), None, None,
    ]  # fmt: skip
    found = read(
        "local_date_time", *[struct.pack(">qq", 1, one) for one in (1_999, nanos, -1)], struct.pack(">qq", 1 << 40, 0)
    )
    assert found == [dt.datetime(1970, 1, 2, microsecond=1), None, None, None]  # noqa: DTZ001


@given(st.lists(st.one_of(st.text().map(str.encode), st.binary(max_size=6)), max_size=20))
@settings(max_examples=examples(100))
def test_text_is_utf8_or_a_bad_row(payloads):
    def expected(data):
        try:
            return data.decode()
        except UnicodeDecodeError:
            return None

    assert read("utf8", *payloads) == [expected(data) for data in payloads]
    shifted = pa.array([b"\xff", *payloads], pa.binary()).slice(1)
    values, codes = reader_of(WriterSchema("utf8"), Causes()).read(shifted)
    found = [None if code else value for value, code in zip(values.to_pylist(), codes.tolist(), strict=True)]
    assert found == [expected(data) for data in payloads]


@pytest.mark.parametrize(
    "values",
    [[], [None, None], [b""], [b"a", None, b"bc"], ["\u00e4".encode(), b"x"], [b"x", None, "\u00e4".encode()]],
    ids=repr,
)
def test_bytes_become_texts_with_and_without_a_look_at_each(values):
    binary = pa.array([b"\xff", *values], pa.binary()).slice(1)
    found = as_text(binary)
    found.validate(full=True)
    assert found.to_pylist() == [None if value is None else value.decode() for value in values]
