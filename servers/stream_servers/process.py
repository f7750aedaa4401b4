"""One server process in a session of its own: started, watched, ended with its whole group."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

LOOPBACK = "127.0.0.1"
# Below the ports the kernel hands to outgoing connections: a server that restarts finds its port free.
_PORTS = range(20_000, 32_000)
_GUARD = Path(__file__).with_name("guard.py")


def free_ports(count: int) -> list[int]:
    """`count` different TCP ports of 127.0.0.1 on which nothing listens now."""
    found: list[int] = []
    with contextlib.ExitStack() as held:
        for port in random.SystemRandom().sample(_PORTS, len(_PORTS)):
            if len(found) == count:
                return found
            candidate = held.enter_context(socket.socket())
            # Servers on all interfaces would collide with one on another address: ask for all of them.
            with contextlib.suppress(OSError):
                candidate.bind(("", port))
                found.append(port)
    raise OSError(f"fewer than {count} free ports in {_PORTS}")


class ServerProcess:
    """A running server: its pid, its log file, and the ways it ends."""

    def __init__(
        self,
        command: Sequence[str],
        *,
        log: Path,
        directory: Path,
        environment: Mapping[str, str],
        user: str | None = None,
        scratch: Path | None = None,
    ) -> None:
        """Start `command` with exactly `environment`, its output appended to `log`.

        `scratch` is removed when this process dies without having stopped the server. `user` needs root.
        """
        self.log = log
        with log.open("ab") as out:
            self._process = subprocess.Popen(
                list(command),
                cwd=directory,
                env=dict(environment),
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                user=user,
            )
        watched = [str(os.getpid()), str(self.pid), *([str(scratch)] if scratch else [])]
        self._guard = subprocess.Popen(
            [sys.executable, "-I", "-S", str(_GUARD), *watched],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )

    @property
    def pid(self) -> int:
        """The server's process id, which is also its group's."""
        return self._process.pid

    @property
    def exit_code(self) -> int | None:
        """None while the server runs."""
        return self._process.poll()

    def send(self, number: signal.Signals) -> None:
        """Send a signal to the whole group, if the server still runs."""
        if self.exit_code is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.pid, number)

    def stop(self, grace_seconds: float) -> None:
        """SIGTERM, and SIGKILL for what is left after `grace_seconds`."""
        self.send(signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(grace_seconds)
        self.kill()

    def kill(self) -> None:
        """SIGKILL for the group, now; returns when the server is gone."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)
        self._process.wait()
        self._guard.kill()
        self._guard.wait()

    def log_tail(self, lines: int = 40) -> str:
        """The last lines the server wrote."""
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-lines:])
