"""Memory to receive into, which this process reuses: the system must clear each page of new memory."""

from __future__ import annotations

from collections import deque
from typing import Final
from weakref import finalize

import numpy as np
import numpy.typing as npt

from airflow_provider_streams.systems.pulsar.reading.decode.unaligned import PADDING

BLOCK_BYTES: Final = 16 * 1024 * 1024
"""The size of one piece of memory."""

_KEPT: Final = 12
"""As many as one landing needs: two row groups of views, the decoded block and the received block."""

Block = npt.NDArray[np.uint8]

_idle: deque[Block] = deque(maxlen=_KEPT)
"""Memory without a view."""


def new_block(size: int) -> Block:
    """A block of so many bytes and `PADDING`. Its memory is reused after the last view of it is gone."""
    memory = _taken(size + len(PADDING))
    # views of a numpy view would hold the memory itself; all views of this array hold the array
    block: Block = np.frombuffer(memory.data, np.uint8)
    if size <= BLOCK_BYTES:
        finalize(block, _idle.append, memory).atexit = False
    return block


def _taken(size: int) -> Block:
    for _ in range(len(_idle)):
        try:
            memory = _idle.popleft()
        except IndexError:  # another thread took it
            break
        if len(memory) == size:
            return memory
        _idle.append(memory)
    return np.empty(size, np.uint8)
