"""Server software, fetched once: the files of a bundle's lock, in parallel, resumed, verified and unpacked."""

from __future__ import annotations

import os
import sys
import tarfile
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from functools import partial
from pathlib import Path
from typing import TypeVar

from stream_servers.bundles import Bundle
from stream_servers.cache import cache_root, cached
from stream_servers.download import Download, Stopped, client
from stream_servers.locks import Lock

MIRROR = "STREAMS_MAVEN_MIRROR"
"""The variable that names the address of another Maven repository than the locks' own."""
_CONNECTIONS = 16
T = TypeVar("T")
_PROGRESS_SECONDS = 2.0


class FetchFailed(RuntimeError):
    """Server software could not be fetched."""

    def __init__(self, title: str, reason: str) -> None:
        self.title = title
        super().__init__(
            f"{title} could not be fetched: {reason}. What has arrived is kept, and the next try goes on from there. "
            f"{MIRROR} names another Maven repository; proxies and certificates are the system's"
        )


def fetch(bundle: Bundle, stop: threading.Event | None = None) -> Path:
    """The directory with the bundle's files; archives are unpacked in it. Downloads on first use only.

    Raises:
        LockOutdated: The bundle's lock is missing or of another declaration.
        FetchFailed: The repository refused, or sent other bytes than the lock says.
        Stopped: `stop` was set meanwhile.
    """
    lock = Lock.read(bundle)
    return cached(lock.key, lambda into: _build(lock, into, stop or threading.Event()))


def jars(bundle: Bundle) -> list[str]:
    """The bundle's jars for a class path, always in one order: two may have one class."""
    return sorted(map(str, fetch(bundle).glob("*.jar")))


def fetch_all(bundles: Sequence[Bundle]) -> list[Path]:
    """As `fetch`, of several at the same time: one is unpacked while others arrive."""
    stop = threading.Event()
    return _together([partial(fetch, bundle, stop) for bundle in bundles], len(bundles), stop)


def _build(lock: Lock, into: Path, stop: threading.Event) -> None:
    begun, progress = time.monotonic(), _Progress(lock)
    arrived = cache_root() / f"{lock.key}.download"
    arrived.mkdir(exist_ok=True)
    try:
        _download(lock, arrived, progress, stop)
    except (OSError, ValueError) as error:
        raise FetchFailed(lock.bundle.title, str(error)) from error
    progress.tell(f"{progress.megabytes} in {time.monotonic() - begun:.1f} s")
    for file in lock.files:
        (arrived / file.name).rename(into / file.name)
    arrived.rmdir()
    _unpack(into, progress)


def _download(lock: Lock, into: Path, progress: _Progress, stop: threading.Event) -> None:
    """All files, or the first error.

    Raises:
        OSError, ValueError, Stopped: See `Download.run`.
    """
    address = (os.environ.get(MIRROR) or lock.repository).rstrip("/")
    progress.tell(f"fetching {len(lock.files)} files, {progress.megabytes} (once)")
    largest_first = sorted(lock.files, key=lambda file: -file.size)
    with client(_CONNECTIONS) as http:
        downloads = [Download(http, address, file, into, stop, progress.add).run for file in largest_first]
        _together(downloads, _CONNECTIONS, stop)


def _together(work: Sequence[Callable[[], T]], threads: int, stop: threading.Event) -> list[T]:
    """Do all at the same time; their results. After an error or Ctrl-C, `stop` ends the others."""
    with ThreadPoolExecutor(threads) as pool:
        running = [pool.submit(one) for one in work]
        try:
            wait(running, return_when=FIRST_EXCEPTION)
        finally:
            if not all(one.done() and one.exception() is None for one in running):
                stop.set()
    for error in sorted((one.exception() for one in running), key=lambda error: isinstance(error, Stopped)):
        if error:
            raise error
    return [one.result() for one in running]


def _unpack(folder: Path, progress: _Progress) -> None:
    """Replace archives by what is in them."""
    for archive in folder.glob("*.tar.gz"):
        begun = time.monotonic()
        with tarfile.open(archive) as files:
            # what Python 3.11 before 3.11.4 has not
            files.extraction_filter = getattr(tarfile, "data_filter", lambda member, _path: member)
            files.extractall(folder)  # noqa: S202 - the bytes are those of the lock
        archive.unlink()
        progress.tell(f"unpacked in {time.monotonic() - begun:.1f} s")


class _Progress:
    """Lines for people, on standard error: what has arrived of a bundle, every few seconds."""

    def __init__(self, lock: Lock) -> None:
        self._title, self._total = lock.bundle.title, lock.size
        self._arrived, self._told, self._lock = 0, time.monotonic(), threading.Lock()

    @property
    def megabytes(self) -> str:
        """Of the whole."""
        return f"{self._total / 1e6:.0f} MB"

    def add(self, count: int) -> None:
        """So many bytes more."""
        with self._lock:
            self._arrived += count
            if (now := time.monotonic()) - self._told < _PROGRESS_SECONDS:
                return
            self._told = now
        self.tell(f"{self._arrived / 1e6:.0f} of {self.megabytes}")

    def tell(self, text: str) -> None:
        """A line of its own."""
        sys.stderr.write(f"{self._title}: {text}\n")  # at once, where several tell
