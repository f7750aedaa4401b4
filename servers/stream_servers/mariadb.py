"""MariaDB from the system's packages: a fresh MySQL server for the journal's tests."""

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

USER, DATABASE = "streams", "streams"
_GREETING = 10
"""The version of the protocol, which is the first byte after a packet's header."""
_SYSTEM_TABLES = ("mysql_system_tables.sql", "mysql_performance_tables.sql", "mysql_system_tables_data.sql")
_SYSTEM_PROGRAMS = "/usr/sbin:/usr/local/sbin"
"""Where packages put servers; no part of an ordinary user's PATH."""
_REMEDY = (
    "Install it (Debian, Ubuntu: apt-get install mariadb-server-core; macOS: brew install mariadb) "
    "and put `mariadbd` on PATH."
)


class MariaDBServer(Server):
    """A MariaDB server with one database; `url` is SQLAlchemy's address of it, password included."""

    title: ClassVar[str] = "MariaDB"
    ports: ClassVar[tuple[str, ...]] = ("sql",)
    ready_seconds: ClassVar[float] = 60.0

    def __init__(self) -> None:
        super().__init__()
        self.user = unprivileged_user("mysql")
        self._password = secrets.token_hex(12)

    @property
    def url(self) -> str:
        """`mysql+pymysql://...` with user and password; treat it as a secret."""
        return f"mysql+pymysql://{USER}:{self._password}@{LOOPBACK}:{self.port['sql']}/{DATABASE}?ssl_disabled=true"

    @property
    def variables(self) -> Mapping[str, str]:
        """The address, with the password."""
        return {"DATABASE_URL": self.url}

    def prepare(self) -> None:
        """Make the system's tables, an account and a database."""
        (self.home / "data").mkdir()
        if self.user is not None:
            for path in (self.home, self.scratch, self.home / "data"):
                shutil.chown(path, self.user)
        tables = Path(find_mariadb()).resolve().parents[1] / "share" / "mysql"
        statements = [  # each ends with its line
            "CREATE DATABASE mysql;",
            "USE mysql;",
            *((tables / name).read_text() for name in _SYSTEM_TABLES),
            "FLUSH PRIVILEGES;",
            f"CREATE DATABASE {DATABASE};",
            f"CREATE USER {USER}@'%' IDENTIFIED BY '{self._password}';",
            f"GRANT ALL ON *.* TO {USER}@'%';\n",
        ]
        subprocess.run(
            [*self._mariadbd(), "--bootstrap"],
            input="\n".join(statements).encode(),
            cwd=self.home,
            env=self.environment(),
            user=self.user,
            check=True,
            capture_output=True,
        )

    def command(self) -> Sequence[str]:
        """`mariadbd` on loopback."""
        network = [f"--bind-address={LOOPBACK}", f"--port={self.port['sql']}", f"--socket={self.home / 'socket'}"]
        return [*self._mariadbd(), *network, "--skip-name-resolve"]

    def is_ready(self) -> bool:
        """It greets, as it does once it accepts connections."""
        with socket.create_connection((LOOPBACK, self.port["sql"]), timeout=5) as connection:
            greeting = connection.recv(5)
            return len(greeting) == 5 and greeting[4] == _GREETING  # noqa: PLR2004 - four bytes of header

    def _mariadbd(self) -> list[str]:
        files = [f"--datadir={self.home / 'data'}", f"--tmpdir={self.scratch}"]
        light = ["--innodb-buffer-pool-size=64M", "--innodb-flush-log-at-trx-commit=0", "--innodb-flush-method=nosync"]
        return [find_mariadb(), "--no-defaults", *files, *light]


def find_mariadb() -> str:
    """The path of `mariadbd`; root installs it when it is missing.

    Raises:
        PackageMissing: it is not there and could not be installed.
    """
    return find_program("MariaDB", "mariadb-server-core", _present, _REMEDY)


def _present() -> str | None:
    return shutil.which("mariadbd") or shutil.which("mariadbd", path=_SYSTEM_PROGRAMS)
