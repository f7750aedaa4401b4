"""Memory is reused after its last view is gone, and never before, whatever the view is."""

# ruff: noqa: S311 - seeded dice: a failing example can be run again

from __future__ import annotations

import random
from collections import deque
from threading import Thread

import numpy as np
import pyarrow as pa
import pytest

from airflow_provider_streams.systems.pulsar.client.wire import receive_buffers
from airflow_provider_streams.systems.pulsar.client.wire.receive_buffers import new_block


@pytest.fixture(autouse=True)
def _no_memory_of_others(monkeypatch):
    monkeypatch.setattr(receive_buffers, "_idle", deque(maxlen=12))


def address(block):
    return block.ctypes.data


VIEWS = {
    "the block": lambda block: block,
    "numpy's": lambda block: block[10:20][2:5],
    "bytes": lambda block: block.data[10:20][2:5],
    "numpy's of bytes": lambda block: np.frombuffer(block.data[10:20], np.uint8)[2:5],
    "unaligned": lambda block: np.ndarray((3,), "<u8", block.data, strides=(1,)),
    "Arrow's buffer": lambda block: pa.py_buffer(block.data[10:20]).slice(2, 3),
    "Arrow's array": lambda block: pa.Array.from_buffers(pa.uint8(), 10, [None, pa.py_buffer(block)])[2:5],
}


@pytest.mark.parametrize("view", VIEWS.values(), ids=VIEWS)
def test_whoever_holds_a_view_keeps_the_memory(view):
    block = new_block(1000)
    at, seen = address(block), view(block)
    del block

    others = [new_block(1000) for _ in range(5)]
    assert at not in map(address, others)
    del seen

    assert address(new_block(1000)) == at


def test_memory_of_another_size_is_left_for_others():
    sizes = {address(new_block(size)): size for size in (100, 200, 300)}
    again = [new_block(size) for size in (300, 100, 200, 100)]
    assert [sizes.get(address(block)) for block in again] == [300, 100, 200, None]


def test_little_memory_is_kept_and_none_of_huge_entries():
    held = [new_block(100) for _ in range(40)] + [new_block(receive_buffers.BLOCK_BYTES + 1)]
    del held
    assert [len(memory) for memory in receive_buffers._idle] == [100 + len(receive_buffers.PADDING)] * 12


def test_threads_never_share_memory():
    wrong = []

    def fill(mark):
        dice, held = random.Random(mark), deque(maxlen=6)
        for _ in range(1500):
            block = new_block(400)
            block[:] = mark
            held.append(block.data[5:50])
            if dice.random() < 0.2:
                held.clear()
            wrong.extend(seen for seen in held if bytes(seen) != bytes([mark]) * 45)

    threads = [Thread(target=fill, args=(mark,)) for mark in range(1, 9)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    assert len(receive_buffers._idle) == 12
