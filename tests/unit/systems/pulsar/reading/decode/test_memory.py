"""Values that stay where they were received: the same bytes as copies, and no more memory than twice theirs."""

# ruff: noqa: S311 - seeded dice: a failing example can be run again

from __future__ import annotations

import random

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_streams.systems.pulsar.reading.decode import arrays
from airflow_provider_streams.systems.pulsar.reading.decode.unaligned import PADDING

VALUES = st.lists(st.one_of(st.none(), st.just(b""), st.binary(max_size=16), st.binary(min_size=13, max_size=90)))


def spans_of(values, gap=b"??"):
    """The values in one piece of memory, with something between them; where each begins and ends, and which are."""
    data, starts = b"", []
    for value in values:
        data += gap
        starts.append(len(data))
        data += value or b""
    memory = np.frombuffer(data + PADDING, np.uint8)
    begins = np.array(starts, np.int64)
    ends = begins + np.array([len(value or b"") for value in values], np.int64)
    return memory, begins, ends, np.array([value is not None for value in values], np.bool_)


def uses_vended_credentials(array, memory):
    held = [one.address for one in array.buffers()[2:] if one is not None]
    return held == [memory.ctypes.data]


@given(VALUES, st.randoms())
def test_any_values_are_the_same_as_views(values, dice):
    memory, starts, ends, valid = spans_of(values)

    found = arrays.views(memory.data, starts, ends, valid)

    found.validate(full=True)
    assert found.type == pa.binary_view()
    assert found.to_pylist() == values
    begin = dice.randint(0, len(values))
    assert found[begin : begin + 7].to_pylist() == values[begin : begin + 7]


@given(st.lists(st.one_of(st.none(), st.just(b""), st.binary(min_size=13, max_size=90))))
def test_what_is_long_enough_lies_where_it_was_received(values):
    values = [*values, b"a value as long as all the others" * 20]
    memory, starts, ends, valid = spans_of(values)

    found = arrays.views(memory.data, starts, ends, valid)

    assert uses_vended_credentials(found, memory)
    assert found.cast(pa.binary()).to_pylist() == values


@pytest.mark.parametrize(
    ("values", "gap"),
    [
        ([b"v" * 100] * 20, b"?" * 200),  # the memory is mostly of others
        ([b"v" * 1000] * 3 + [b"v" * 12], b""),
        ([None, b"", None], b"?" * 1000),
        ([], b""),
    ],
)
def test_little_or_short_values_are_copied(values, gap):
    memory, starts, ends, valid = spans_of(values, gap)

    found = arrays.views(memory.data, starts, ends, valid)

    assert not uses_vended_credentials(found, memory)
    assert found.to_pylist() == values


def test_empty_values_of_no_memory_at_all_are_empty():
    nowhere = np.zeros(3, np.int64)

    found = arrays.views(b"", nowhere, nowhere)

    assert found.type == pa.binary_view()
    assert found.to_pylist() == [b"", b"", b""]


def test_views_keep_their_memory_alive():
    dice = random.Random(2)
    sent = [dice.randbytes(500) for _ in range(50)]
    memory, starts, ends, _ = spans_of(sent)

    found = arrays.views(memory.data, starts, ends)
    del memory

    assert found.to_pylist() == sent
