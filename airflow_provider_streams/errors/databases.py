"""What errors of SQL databases mean: whether waiting helps, and if not, what does."""

from __future__ import annotations

import re
import sqlite3
from pathlib import Path
from typing import Final, NamedTuple

from airflow_provider_streams.errors.write_access import free_bytes, nearest_folder, why_not_writable


class Meaning(NamedTuple):
    """What a database's error means for a process that writes to it."""

    passes: bool
    """Whether the same statement may succeed later."""
    advice: str
    """A sentence for the message."""
    why: str = ""
    """The cause, if it is more than the error says itself."""


_READ_ONLY: Final = Meaning(
    passes=False,
    advice="Let this user write the database (SQLite also writes files next to it), or name another one in the "
    "connection.",
)
_NO_GRANT: Final = Meaning(
    passes=False, advice="Grant this user SELECT, INSERT, UPDATE and DELETE, and CREATE for migrations."
)
_NOT_THERE: Final = Meaning(  # a mount may come back
    passes=True, advice="Create its folder, or correct the path in the connection."
)
_NO_TLS: Final = Meaning(
    passes=False,
    advice="Switch TLS on at the server. If the password may travel in clear, write sslmode=disable (MySQL: "
    "ssl_disabled=true) into the options of the database's address, or for the journal into its connection's extra.",
)
_WRONG_LOGIN: Final = Meaning(passes=False, advice="Correct user and password in the connection.")
_NOT_ADMITTED: Final = Meaning(
    passes=False,
    advice="Correct user and password in the connection, or let the server admit this user from this host (Postgres: "
    "pg_hba.conf).",
)
_LOGIN_FAILED: Final = re.compile("password authentication failed|no password supplied")
"""What Postgres and its library say while they connect, where its drivers give no code."""
_TLS_LACKS: Final = re.compile("SSL (is|was) required")
"""What drivers of Postgres and MySQL say of a server without it, without a code of its own."""
_FULL: Final = Meaning(passes=True, advice="Free some space on its disk.")

SQLITE_NEEDS: Final = 1024**2
"""Bytes that must be free on the disk of a SQLite file: it and its helper files grow by pages, not to megabytes."""

_SQLITE: Final = {
    sqlite3.SQLITE_READONLY: _READ_ONLY,
    sqlite3.SQLITE_PERM: _READ_ONLY,
    sqlite3.SQLITE_CANTOPEN: _NOT_THERE,
    sqlite3.SQLITE_FULL: _FULL,
}
"""By primary result code (https://www.sqlite.org/rescode.html)."""
_SQLSTATE: Final = {
    "25006": _READ_ONLY,
    "28000": _NOT_ADMITTED,
    "28P01": _WRONG_LOGIN,
    "42501": _NO_GRANT,
    "53100": _FULL,
}
"""Of PostgreSQL (https://www.postgresql.org/docs/current/errcodes-appendix.html)."""
_MYSQL: Final = {
    1021: _FULL,
    1044: _NO_GRANT,
    1045: _WRONG_LOGIN,
    1142: _NO_GRANT,
    1143: _NO_GRANT,
    1290: _READ_ONLY,
    1792: _READ_ONLY,
    1836: _READ_ONLY,
}
"""By error number (https://dev.mysql.com/doc/mysql-errors/8.4/en/server-error-reference.html)."""


def meaning_of(error: BaseException, file: str = "") -> Meaning | None:
    """What a driver's error means; None: this module does not know it.

    Args:
        error: what the driver raised, not SQLAlchemy's error around it.
        file: SQLite's file, if the database is one.
    """
    if not isinstance(error, sqlite3.Error):
        if _TLS_LACKS.search(str(error)):
            return _NO_TLS
        if _LOGIN_FAILED.search(str(error)):
            return _WRONG_LOGIN
        return _SQLSTATE.get(str(getattr(error, "sqlstate", ""))) or _MYSQL.get(_number_of(error))
    # the primary code is the last byte of an extended one; errors of the module itself have none
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    if code == sqlite3.SQLITE_IOERR and file and free_bytes(Path(file)) < SQLITE_NEEDS:
        return _FULL._replace(why="its disk is full")
    known = _SQLITE.get(code)
    if known in (_READ_ONLY, _NOT_THERE) and file and (why := why_read_only(Path(file))):
        return _READ_ONLY._replace(why=why)
    return known


def why_no_file(file: Path) -> str:
    """Why SQLite can neither open nor make a file; empty: it can, or what is wrong cannot be seen."""
    if not file.absolute().parent.exists():
        return f"the folder {file.absolute().parent} does not exist"
    return why_read_only(file)


def why_read_only(file: Path) -> str:
    """Why this user cannot write a SQLite file; empty: it can, or there is none to judge."""
    if file.exists() and (why := why_not_writable(file)):
        return why
    why = why_not_writable(nearest_folder(file))
    return f"{why}, where SQLite puts files of its own" if why else ""


def _number_of(error: BaseException) -> int:
    """MySQL's error number, which its drivers give as the first argument."""
    first = error.args[0] if error.args else None
    return first if isinstance(first, int) else 0
