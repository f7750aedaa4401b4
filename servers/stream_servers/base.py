"""The life of a server: prepared once, started, ready, restarted, killed, stopped, cleaned up."""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import ClassVar, Self

import httpx

from stream_servers.process import ServerProcess, free_ports
from stream_servers.waiting import wait_until


class ServerFailed(RuntimeError):
    """A server ended or stayed silent instead of becoming ready."""

    def __init__(self, title: str, problem: str, log: Path, tail: str) -> None:
        self.title, self.problem, self.log = title, problem, log
        super().__init__(f"{title} {problem}. The end of its log ({log}):\n{tail}")


class Server(ABC):
    """One server on free ports of 127.0.0.1, as a context manager.

    A subclass says what to run (`command`), with which files (`prepare`) and how to know that it answers
    (`is_ready`). Its data lives in `home`, a fresh directory that survives `restart()` and `kill()` and goes
    with `stop()`.
    """

    title: ClassVar[str]
    """What messages call it."""
    ports: ClassVar[tuple[str, ...]]
    """The names of the ports it listens on; `port` holds their numbers."""
    ready_seconds: ClassVar[float] = 180.0
    """How long it may take to answer."""
    grace_seconds: ClassVar[float] = 15.0
    """How long it may take to end in good order."""
    user: str | None = None
    """The account the process runs under; None for our own."""
    _http: httpx.Client
    """For the server's REST API, from `start()` to `stop()`."""

    def __init__(self) -> None:
        self.port = dict(zip(self.ports, free_ports(len(self.ports)), strict=True))
        self._home: Path | None = None
        self._process: ServerProcess | None = None

    @abstractmethod
    def prepare(self) -> None:
        """Fetch what is needed and write files below `home`; called once, before the first start."""

    @abstractmethod
    def command(self) -> Sequence[str]:
        """What to run."""

    @abstractmethod
    def is_ready(self) -> bool:
        """Whether the server serves requests now; connection errors count as no."""

    def environment(self) -> Mapping[str, str]:
        """The server's whole environment: a bare one, because some servers log theirs."""
        kept = ("PATH", "JAVA_HOME", "HOME", "LANG")
        return {"TMPDIR": str(self.scratch), **{name: os.environ[name] for name in kept if name in os.environ}}

    @property
    def variables(self) -> Mapping[str, str]:
        """The variables by which this server's clients find it; secrets may be among them."""
        return {}

    @property
    def home(self) -> Path:
        """Where configuration, data and `server.log` live."""
        if self._home is None:
            raise RuntimeError(f"{self.title} has not been started")
        return self._home

    @property
    def scratch(self) -> Path:
        """For temporary files: those of a killed server go with its `home`."""
        return self.home / "tmp"

    @property
    def running(self) -> bool:
        """Whether the process exists (a paused or hung server is still running)."""
        return self._process is not None and self._process.exit_code is None

    @property
    def pid(self) -> int:
        """The running server's process id."""
        return self._running().pid

    def start(self) -> Self:
        """Start and wait until it is ready; a killed server starts again on its old ports and data.

        Raises:
            ServerFailed: It ended, or was not ready within `ready_seconds`.
        """
        if self.running:
            return self
        if self._home is None:
            self._home = Path(tempfile.mkdtemp(prefix=f"{type(self).__name__.lower()}-"))
            self._http = httpx.Client(trust_env=False, timeout=30)
            self.scratch.mkdir()
            self.prepare()
        self._process = ServerProcess(
            self.command(),
            log=self.home / "server.log",
            directory=self.home,
            environment=self.environment(),
            user=self.user,
            scratch=self.home,
        )
        self._wait_ready(self._process)
        return self

    def stop(self) -> None:
        """End the server and remove its data."""
        if self._process is not None:
            self._process.stop(self.grace_seconds)
        if self._home is not None:
            self._http.close()
            shutil.rmtree(self._home, ignore_errors=True)
        self._process = self._home = None

    def restart(self) -> None:
        """End the server in good order and start it again with the same ports and data."""
        self._running().stop(self.grace_seconds)
        self.start()

    def kill(self) -> None:
        """End the server as a crash would (SIGKILL); `start()` brings it back with its data."""
        self._running().kill()

    def pause(self) -> None:
        """Stop the process from running: connections stay open and silent."""
        self._running().send(signal.SIGSTOP)

    def resume(self) -> None:
        """Undo `pause()`."""
        self._running().send(signal.SIGCONT)

    def log_text(self) -> str:
        """All that the server wrote so far."""
        return (self.home / "server.log").read_text(errors="replace")

    def __enter__(self) -> Self:
        try:
            return self.start()
        except BaseException:
            self.stop()
            raise

    def __exit__(self, *_exception: object) -> None:
        self.stop()

    def _running(self) -> ServerProcess:
        if self._process is None:
            raise RuntimeError(f"{self.title} is not running")
        return self._process

    def _wait_ready(self, process: ServerProcess) -> None:
        try:
            ended = wait_until(lambda: self._state(process), f"{self.title} to be ready", self.ready_seconds, 0.2)
        except TimeoutError:
            problem = f"was not ready within {self.ready_seconds:g} s"
            raise ServerFailed(self.title, problem, process.log, process.log_tail()) from None
        if ended == "ended":
            problem = f"ended with code {process.exit_code} before it was ready"
            raise ServerFailed(self.title, problem, process.log, process.log_tail())

    def _state(self, process: ServerProcess) -> str | None:
        if process.exit_code is not None:
            return "ended"
        try:
            return "ready" if self.is_ready() else None
        except (httpx.TransportError, OSError):
            return None
