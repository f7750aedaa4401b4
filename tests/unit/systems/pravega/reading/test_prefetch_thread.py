from __future__ import annotations

import threading

import pytest

from airflow_provider_streams.systems.pravega.reading.prefetch_thread import Prefetched


def alive() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "pravega-read"]


def test_items_come_in_order_and_the_thread_ends():
    assert list(Prefetched(range(100), 3)) == list(range(100))
    assert not alive()


def test_an_error_is_raised_after_the_items_before_it():
    def source():
        yield 1
        raise KeyError("late")

    items = iter(Prefetched(source(), 1))
    assert next(items) == 1
    with pytest.raises(KeyError, match="late"):
        next(items)
    assert not alive()


def test_no_more_than_the_room_is_made_ahead():
    made = []

    def source():
        for number in range(50):
            made.append(number)
            yield number

    items = iter(Prefetched(source(), 2))
    for taken in range(1, 10):
        next(items)
        assert len(made) <= taken + 3
    items.close()
    assert not alive()
    assert len(made) < 50
