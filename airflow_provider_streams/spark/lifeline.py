"""A job that ends with the process that wants it, however that one ends: a killed task's job must not land late.

The one that wants it holds a lock on a file; the system lets go of it when that process is gone. Both are on one
machine.
"""

from __future__ import annotations

import fcntl
import logging
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

EXIT_CODE = 70

_log = logging.getLogger(__name__)


@contextmanager
def held(file: Path) -> Iterator[None]:
    """Hold a new file's lock meanwhile. Programs that this process starts do not inherit it."""
    descriptor = os.open(file, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def end_with(file: Path) -> None:
    """From now on, this process ends at once when nobody holds the file's lock any more.

    Raises:
        OSError: there is no such file.
    """
    descriptor = os.open(file, os.O_RDWR)
    threading.Thread(target=_wait, args=(descriptor,), name="streams-lifeline", daemon=True).start()


def _wait(descriptor: int) -> None:
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    _log.error("the task that wanted this job is gone: the job ends, and lands nothing")
    os._exit(EXIT_CODE)
