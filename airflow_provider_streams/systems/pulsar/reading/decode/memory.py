"""Payloads that lie in one piece of receive memory, where they are read in place."""

from __future__ import annotations

from functools import cache
from typing import Any, Final

import numpy as np
import pyarrow as pa

from airflow_provider_streams.systems.pulsar.reading.decode.compression import Payload
from airflow_provider_streams.systems.pulsar.reading.decode.entry import Group
from airflow_provider_streams.systems.pulsar.reading.decode.unaligned import PADDING, Ints

_KEPT_BYTES: Final = 31 * 1024 * 1024
FEWEST_BYTES: Final = 16 * 1024
"""Payloads that are smaller on average are cheaper to copy than to locate."""


@cache
def keep_freed_memory() -> None:
    """Let the allocator keep freed memory of large arrays, as otherwise the system clears each page again.

    glibc learns from what is freed: from then on it keeps pieces of up to this size, at most 32 MiB.
    """
    np.empty(_KEPT_BYTES, np.uint8)


def _memory_of(payload: Payload) -> np.ndarray[Any, Any] | None:
    """The array that a payload is a view of; None: it is no such view."""
    memory = payload.obj if isinstance(payload, memoryview) else None
    return memory if isinstance(memory, np.ndarray) else None


def one_memory(group: Group) -> tuple[memoryview, Ints, Ints] | None:
    """The memory, and where each entry's payload begins and ends in it; None: the payloads must be joined."""
    memory = _memory_of(group.payloads[0])
    if memory is None or not group.is_batch.all():
        return None
    sizes = np.array([len(payload) for payload in group.payloads])
    if sizes.mean() < FEWEST_BYTES or any(_memory_of(payload) is not memory for payload in group.payloads):
        return None
    begins = np.array([pa.py_buffer(payload).address for payload in group.payloads]) - pa.py_buffer(memory.data).address
    ends = begins + sizes
    is_plain = memory.ndim == 1 and memory.dtype == np.uint8 and memory.flags.c_contiguous
    has_padding = is_plain and int(ends.max()) + len(PADDING) <= len(memory)
    return (memory.data, begins, ends) if has_padding else None
