"""Who is alive, however it may end: the system lets go of a file's lock when the process that holds it is gone.

A job ends with the task that wants it: a killed task's job must not land late. And what a live attempt has staged is
told from what a dead one left. A file system without locks tells everybody to be dead.
"""

from __future__ import annotations

import fcntl
import logging
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

EXIT_CODE = 70

_log = logging.getLogger(__name__)


class Life:
    """A file's lock, held while its process lives. Programs that this process starts do not inherit it."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._descriptor: int | None = None

    def begin(self) -> None:
        """Make the file, and hold its lock. Does nothing if it is held already."""
        if self._descriptor is None:
            self._descriptor = os.open(self._file, os.O_RDWR | os.O_CREAT, 0o600)
            with suppress(OSError):
                fcntl.flock(self._descriptor, fcntl.LOCK_EX)

    def end(self) -> None:
        """Remove the file, and let go. Does nothing if it was not held."""
        if self._descriptor is not None:
            self._file.unlink(missing_ok=True)
            os.close(self._descriptor)
            self._descriptor = None

    @contextmanager
    def lived(self) -> Iterator[None]:
        """Alive meanwhile."""
        self.begin()
        try:
            yield
        finally:
            self.end()


def is_alive(file: Path) -> bool:
    """Whether somebody holds a file's lock."""
    try:
        descriptor = os.open(file, os.O_RDWR)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    finally:
        os.close(descriptor)
    return False


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
