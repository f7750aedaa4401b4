"""One file by HTTP: resumed where it stopped, repeated when the line fails, and verified."""

from __future__ import annotations

import hashlib
import ssl
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import httpx
import truststore

from stream_servers.locks import LockedFile

_TRIES = 5
_PAUSE_SECONDS = 0.5
_TIMEOUT_SECONDS = 30.0


class Stopped(Exception):
    """The others are no longer wanted."""


class _LineFailed(Exception):
    """What a second try may change."""


def client(connections: int) -> httpx.Client:
    """With the system's certificates, and the proxies that the environment names."""
    return httpx.Client(
        verify=truststore.SSLContext(ssl.PROTOCOL_TLS_CLIENT),
        timeout=_TIMEOUT_SECONDS,
        limits=httpx.Limits(max_connections=connections),
        follow_redirects=True,
    )


@dataclass(frozen=True, slots=True)
class Download:
    """A file of the repository at `address`, to be put into a folder under its own name."""

    http: httpx.Client
    address: str
    file: LockedFile
    into: Path
    stop: threading.Event
    progress: Callable[[int], None]
    """Takes the number of bytes that arrived, and of those that were there."""

    def run(self) -> None:
        """Until the file is there, or cannot be had. What has arrived of it is kept beyond a failure.

        Raises:
            Stopped: `stop` was set meanwhile.
            OSError: the repository refuses it, or cannot be reached.
            ValueError: it has other bytes than the lock says; they are removed.
        """
        whole, part = self.into / self.file.name, self.into / f"{self.file.name}.part"
        if whole.is_file():
            self.progress(self.file.size)
            return
        self.progress(part.stat().st_size if part.is_file() else 0)
        for pause in range(_TRIES):
            if self.stop.wait(pause * _PAUSE_SECONDS):
                raise Stopped
            try:
                self._receive(part)
                break
            except (_LineFailed, httpx.TransportError) as error:
                failure = error
        else:
            raise OSError(f"{self.file.path}: {failure or type(failure).__name__}")
        self._verify(part)
        part.rename(whole)

    def _receive(self, part: Path) -> None:
        there = part.stat().st_size if part.is_file() else 0
        if there >= self.file.size:
            return
        headers = {"Accept-Encoding": "identity", **({"Range": f"bytes={there}-"} if there else {})}
        with self.http.stream("GET", f"{self.address}/{self.file.path}", headers=headers) as answer:
            if answer.is_server_error or answer.status_code == httpx.codes.TOO_MANY_REQUESTS:
                raise _LineFailed(f"HTTP {answer.status_code}")
            if not answer.is_success:
                raise OSError(f"{self.file.path}: HTTP {answer.status_code}")
            resumed = answer.status_code == httpx.codes.PARTIAL_CONTENT
            self.progress(0 if resumed else -there)
            with part.open("ab" if resumed else "wb") as out:
                for chunk in answer.iter_raw():
                    if self.stop.is_set():
                        raise Stopped
                    out.write(chunk)
                    self.progress(len(chunk))

    def _verify(self, part: Path) -> None:
        with part.open("rb") as content:
            found = hashlib.file_digest(content, "sha256").hexdigest()
        if found != self.file.sha256:
            size = part.stat().st_size
            part.unlink()
            raise ValueError(f"{self.file.path}: {size} bytes of SHA-256 {found}, not what the lock says")
