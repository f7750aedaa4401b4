"""Whether a process lives, however it may end: the system releases a file's lock when the process that holds it ends.

A job ends with its task, for the job of a killed task must not land late. And cleanup tells what a live attempt staged
from what a dead one left. On a file system without locks, every process counts as dead.
"""

from __future__ import annotations

import errno
import fcntl
import logging
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

EXIT_CODE = 70

_log = logging.getLogger(__name__)


class ProcessLock:
    """A file's lock, held while this process lives. Programs that it starts do not inherit the lock."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._descriptor: int | None = None

    def begin(self) -> None:
        """Make the file, and hold its lock. Does nothing if it is held already."""
        if self._descriptor is None:
            self._descriptor = open_lock(self._file)
            wait_for_lock(self._descriptor)

    def end(self) -> None:
        """Remove the file, and let go. Does nothing if it was not held."""
        if self._descriptor is not None:
            self._file.unlink(missing_ok=True)
            os.close(self._descriptor)
            self._descriptor = None

    @contextmanager
    def held(self) -> Iterator[None]:
        """Alive meanwhile."""
        self.begin()
        try:
            yield
        finally:
            self.end()


def open_lock(file: Path) -> int:
    """A descriptor for a file's lock. A file that is missing is made, as open to other users as the umask has it.

    A lock needs no right to write on most file systems, so a file that only its owner may write serves as well.
    Raises `OSError`.
    """
    try:
        return os.open(file, os.O_RDWR | os.O_CREAT, 0o666)
    except PermissionError:
        return _open(file)


def wait_for_lock(descriptor: int) -> None:
    """Take a file's lock, if the file system has locks. `PermissionError`: only users who may write the file get it."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
    except OSError as error:
        if error.errno == errno.EBADF:  # as on NFS
            raise PermissionError(errno.EACCES, "another user's lock file must be writable here") from error


def _open(file: Path) -> int:
    try:
        return os.open(file, os.O_RDWR)
    except PermissionError:
        return os.open(file, os.O_RDONLY)


def is_alive(file: Path) -> bool:
    """Whether a process holds a file's lock; also if another user's file cannot be opened, so this cannot be known."""
    try:
        descriptor = _open(file)
    except PermissionError:
        return True
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


def exit_when_released(file: Path) -> None:
    """End this process as soon as no other holds the file's lock; `OSError`: there is no such file."""
    descriptor = os.open(file, os.O_RDWR)

    def wait() -> None:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        _log.error("the task that wanted this job is gone: the job ends, and lands nothing")
        os._exit(EXIT_CODE)

    threading.Thread(target=wait, name="streams-lifeline", daemon=True).start()
