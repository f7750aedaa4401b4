"""Postgres from the system's packages: a fresh cluster for the journal's tests."""

from __future__ import annotations

import secrets
import shutil
import socket
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import ClassVar

from stream_servers.base import Server
from stream_servers.debian import find_program, unprivileged_user
from stream_servers.process import LOOPBACK

USER = "streams"
_PROTOCOL = 3 << 16
_ASKS_PASSWORD = b"R"
_PACKAGED = Path("/usr/lib/postgresql")
_REMEDY = (
    "Install it (Debian, Ubuntu: apt-get install postgresql; macOS: brew install postgresql) "
    "and put `initdb` and `postgres` on PATH."
)


class PostgresServer(Server):
    """A Postgres cluster with one database; `url` is SQLAlchemy's address of it, password included.

    The server refuses to run as root; started by root, it runs as `postgres` or `nobody`.

    Args:
        settings: of `postgresql.conf`, such as `wal_level`.
    """

    title: ClassVar[str] = "Postgres"
    ports: ClassVar[tuple[str, ...]] = ("sql",)
    ready_seconds: ClassVar[float] = 60.0

    def __init__(self, settings: Mapping[str, str] | None = None) -> None:
        super().__init__()
        self._settings = dict(settings or {})
        self.user = unprivileged_user("postgres")
        self._password = secrets.token_hex(12)

    @property
    def url(self) -> str:
        """`postgresql+psycopg://...` with user and password; treat it as a secret."""
        return f"postgresql+psycopg://{USER}:{self._password}@{LOOPBACK}:{self.port['sql']}/postgres?sslmode=disable"

    @property
    def variables(self) -> Mapping[str, str]:
        """The address, with the password."""
        return {"DATABASE_URL": self.url}

    def prepare(self) -> None:
        """Make the cluster."""
        password_file = self.home / "password"
        password_file.touch(mode=0o600)
        password_file.write_text(self._password)
        if self.user is not None:
            for path in (self.home, self.scratch, password_file):
                shutil.chown(path, self.user)
        access = ["-U", USER, "--auth=scram-sha-256", f"--pwfile={password_file}", "-E", "UTF8", "--locale=C"]
        command = [find_postgres("initdb"), "-D", str(self.home / "data"), "--no-sync", *access]
        subprocess.run(command, cwd=self.home, env=self.environment(), user=self.user, check=True, capture_output=True)

    def command(self) -> Sequence[str]:
        """`postgres` on loopback, without a Unix socket; tests need no fsync."""
        network = ["-h", LOOPBACK, "-p", str(self.port["sql"]), "-k", ""]
        settings = [part for name, value in self._settings.items() for part in ("-c", f"{name}={value}")]
        return [find_postgres("postgres"), "-D", str(self.home / "data"), *network, "-F", *settings]

    def environment(self) -> Mapping[str, str]:
        """A bare one with a home the server's user may enter."""
        return {**super().environment(), "HOME": str(self.home)}

    def is_ready(self) -> bool:
        """It asks a user for a password: while it starts or recovers, it answers with an error."""
        user = b"user\0" + USER.encode() + b"\0\0"
        startup = (8 + len(user)).to_bytes(4, "big") + _PROTOCOL.to_bytes(4, "big") + user
        with socket.create_connection((LOOPBACK, self.port["sql"]), timeout=5) as connection:
            connection.sendall(startup)
            return connection.recv(1) == _ASKS_PASSWORD


def find_postgres(program: str) -> str:
    """The path of `initdb` or `postgres`: on PATH, or where Debian keeps it; root installs it when it is missing.

    Raises:
        PackageMissing: it is not there and could not be installed.
    """
    return find_program("Postgres", "postgresql", lambda: _present(program), _REMEDY)


def _present(program: str) -> str | None:
    newest_first = sorted(_PACKAGED.glob(f"*/bin/{program}"), key=_major, reverse=True)
    return shutil.which(program) or next((str(path) for path in newest_first), None)


def _major(path: Path) -> int:
    return int(path.parts[-3]) if path.parts[-3].isdigit() else 0
