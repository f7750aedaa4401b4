"""Memory to receive into, which this process uses again: of new memory, the system must clear each page."""

from __future__ import annotations

from collections import deque
from typing import Final
from weakref import finalize

import numpy as np
import numpy.typing as npt

from airflow_provider_streams.systems.pulsar.decode.unaligned import PADDING

BLOCK_BYTES: Final = 16 * 1024 * 1024
"""How much is received into one piece of memory."""

_KEPT: Final = 12
"""As many as one landing needs: two row groups of views, what is decoded, and what is received meanwhile."""

Block = npt.NDArray[np.uint8]

_idle: deque[Block] = deque(maxlen=_KEPT)
"""Memory that nobody sees."""


def new_block(size: int) -> Block:
    """A block of so many bytes, and of `PADDING`. Its memory is another one's once nobody holds a view of it."""
    memory = _taken(size + len(PADDING))
    # not a view of numpy's, of which others would hold the memory itself: all that is seen of it holds this array
    block: Block = np.frombuffer(memory.data, np.uint8)
    if size <= BLOCK_BYTES:
        finalize(block, _idle.append, memory).atexit = False
    return block


def _taken(size: int) -> Block:
    for _ in range(len(_idle)):
        try:
            memory = _idle.popleft()
        except IndexError:  # another thread takes some, too
            break
        if len(memory) == size:
            return memory
        _idle.append(memory)
    return np.empty(size, np.uint8)
