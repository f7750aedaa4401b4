"""Payloads that lie in one piece of memory, where they were received: these are read there, and not copied first."""

from __future__ import annotations

from functools import cache
from typing import Any, Final

import numpy as np
import pyarrow as pa

from airflow_provider_streams.systems.pulsar.decode.compression import Payload
from airflow_provider_streams.systems.pulsar.decode.entry import Group
from airflow_provider_streams.systems.pulsar.decode.unaligned import PADDING, Ints

_KEPT_BYTES: Final = 31 * 1024 * 1024
FEWEST_BYTES: Final = 16 * 1024
"""Of payloads that are smaller, on average, it costs more to ask where they lie than to copy them."""


@cache
def keep_freed_memory() -> None:
    """Let the allocator keep what large arrays leave, for the next ones: else the system clears each page anew.

    glibc learns from what is freed: a piece of memory as large as this one, up to 32 MiB, it keeps from then on.
    """
    np.empty(_KEPT_BYTES, np.uint8)


def _memory_of(payload: Payload) -> np.ndarray[Any, Any] | None:
    """The array that a payload is a view of; None: of none."""
    memory = payload.obj if isinstance(payload, memoryview) else None
    return memory if isinstance(memory, np.ndarray) else None


def one_memory(group: Group) -> tuple[memoryview, Ints, Ints] | None:
    """The memory, and where the payload of each entry begins and ends in it; None: they must be joined."""
    memory = _memory_of(group.payloads[0])
    if memory is None or not group.is_batch.all():
        return None
    sizes = np.array([len(payload) for payload in group.payloads])
    if sizes.mean() < FEWEST_BYTES or any(_memory_of(payload) is not memory for payload in group.payloads):
        return None
    begins = np.array([pa.py_buffer(payload).address for payload in group.payloads]) - pa.py_buffer(memory.data).address
    ends = begins + sizes
    return (memory.data, begins, ends) if _has_room(memory, int(ends.max())) else None


def _has_room(memory: np.ndarray[Any, Any], end: int) -> bool:
    """Whether the memory is plain bytes, and goes on behind the last payload."""
    return (
        memory.ndim == 1
        and memory.dtype == np.uint8
        and memory.flags.c_contiguous
        and end + len(PADDING) <= len(memory)
    )
