"""The journal's database: connections, transactions and errors, on SQLite, Postgres and MySQL."""

from __future__ import annotations

import functools
import os
import re
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, Final, TypeVar

from sqlalchemy import Connection, Dialect, Engine, Insert, NullPool, Update, create_engine, event
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import (
    ArgumentError,
    DBAPIError,
    IntegrityError,
    InterfaceError,
    NoSuchModuleError,
    OperationalError,
    SQLAlchemyError,
)

from airflow_provider_streams.errors import JournalError, JournalUnavailable, as_sentence
from airflow_provider_streams.errors.databases import Meaning, meaning_of
from airflow_provider_streams.journal import migrate
from airflow_provider_streams.model.database.address import errors_of_driver, unescaped
from airflow_provider_streams.model.database.drivers import passwords_elsewhere
from airflow_provider_streams.model.database.tls import with_tls
from airflow_provider_streams.model.optional_dependencies import importing
from airflow_provider_streams.redaction import redact, register_secret

BUSY_SECONDS: Final = 30
CONNECT_SECONDS: Final = 10

_DRIVERS = {
    "postgres": "postgresql+psycopg",
    "postgresql": "postgresql+psycopg",
    "mysql": "mysql+pymysql",
    "mariadb": "mariadb+pymysql",
}
"""The driver our extras install, for URLs that name none."""
_EXTRAS = {"postgresql": "postgres", "mysql": "mysql", "mariadb": "mysql"}
_CONNECT_TIMEOUT = {"psycopg", "psycopg2", "mysqldb", "pymysql"}
"""Drivers that know the argument `connect_timeout`."""
_WRITE = "streams_write"
_SECRET_OPTION = re.compile("pass|secret|token|key", re.IGNORECASE)

T = TypeVar("T")


class Database:
    """One SQL database. Connects when used; every transaction has a connection of its own, so forks are safe.

    Args:
        url: a SQLAlchemy URL; `sqlite:///<path>`, `postgresql://..`, `mysql://..`.

    Raises:
        JournalError: not a URL, one of an asynchronous driver, or one of a database in memory.
        InvalidRequest: see `with_tls`; or its driver cannot use an option.
        MissingDependency: its driver is not installed.
    """

    def __init__(self, url: str) -> None:
        self._url = _parse(url)
        self.name = self._url.set(query={}).render_as_string(hide_password=True)
        """The URL without password and options, for messages."""
        _check_dialect(self._url)
        for password in passwords_elsewhere(self._url):
            register_secret(password)
        self._engine = _engine(with_tls(self._url, f"the journal {self.name}"), f"the journal {self.name}")
        self._ready = False
        self._preparing = threading.Lock()

    def __repr__(self) -> str:
        return f"Database({self.name!r})"

    def close(self) -> None:
        """Close every connection."""
        self._engine.dispose()

    def prepare(self) -> None:
        """Create or migrate the tables, once per object; any number of processes may do so at once.

        Raises:
            JournalError: the database cannot be used, or a newer release has migrated it.
        """
        with self._preparing:
            if not self._ready:
                with self._translated():
                    self._migrate()
                self._ready = True

    @contextmanager
    def kept_open(self) -> Iterator[None]:
        """Meanwhile an idle connection is open: SQLite syncs the disk when the last one of a file closes."""
        self.prepare()
        with self._translated():
            connection = self._engine.connect()
        try:
            yield
        finally:
            connection.close()

    @contextmanager
    def looking(self) -> Iterator[Connection]:
        """As `reading`, of tables as they are: nothing is made or migrated, so they may be missing."""
        with self._translated(), self._engine.connect() as connection, connection.begin():
            yield connection

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """A transaction that only reads."""
        self.prepare()
        with self._translated(), self._engine.connect() as connection, connection.begin():
            yield connection

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """A transaction that writes; rolled back by any exception."""
        self.prepare()
        with self._translated(), self._write() as connection:
            yield connection

    def insert_once(self, *statements: Insert | Update) -> bool:
        """Insert a row in a transaction of its own; False if a unique constraint says it is there already.

        Updates come before the insertion: on MySQL, two of these would deadlock otherwise.
        """
        self.prepare()
        with self._translated():
            try:
                with self._write() as connection:
                    for statement in statements:
                        connection.execute(statement)
            except IntegrityError:
                return False
            return True

    def winner(
        self, read: Callable[[Connection], T | None], insert: Callable[[], Insert], *, change: Update | None = None
    ) -> T:
        """What `read` finds, or finds after inserting: every caller gets the row of the first one.

        `change` is executed before the insertion, in the same transaction.
        """
        with self.reading() as connection:
            found = read(connection)
        if found is None:
            self.insert_once(*(() if change is None else (change,)), insert())
            with self.reading() as connection:
                found = read(connection)
        if found is None:
            raise JournalError(f"{self.name}: a row was refused although no other row conflicts. Check the database.")
        return found

    @contextmanager
    def _write(self) -> Iterator[Connection]:
        with self._engine.connect().execution_options(**{_WRITE: True}) as connection, connection.begin():
            yield connection

    def _migrate(self) -> None:
        with self._engine.connect() as connection, connection.begin():
            if migrate.revision(connection) == migrate.HEAD:
                return
        with self._write() as connection:
            migrate.upgrade(connection)

    @contextmanager
    def _translated(self) -> Iterator[None]:
        """Errors of drivers as ours, without statements, values or passwords."""
        try:
            yield
        except SQLAlchemyError as error:
            raise self._error(error) from None

    def _error(self, error: SQLAlchemyError) -> JournalError:
        cause = error.orig if isinstance(error, DBAPIError) and error.orig is not None else error
        meaning = meaning_of(cause, self._url.database or "")
        if meaning is None:
            passes = isinstance(error, OperationalError | InterfaceError)
            meaning = Meaning(passes, "Check the database and the journal's connection." if passes else "Check it.")
        said = f"{type(cause).__name__}: {redact(' '.join(str(cause).split()), _secrets(self._url))}"
        kind = JournalUnavailable if meaning.passes else JournalError
        return kind(f"{self.name}: {as_sentence(f'{said}: {meaning.why}' if meaning.why else said)} {meaning.advice}")


def _secrets(url: URL) -> Iterator[str]:
    """Texts of the URL that must not be seen: the password, and options that are passwords by another name."""
    if url.password:
        yield url.password
    for name, value in url.query.items():
        if _SECRET_OPTION.search(name):
            yield from (value,) if isinstance(value, str) else value


def _parse(text: str) -> URL:
    if why := unescaped(text):
        raise JournalError(f"in the journal's URL, {why}")
    try:
        url = make_url(text)
    except (ArgumentError, ValueError, TypeError):
        # its own message may hold the text, and that a password
        raise JournalError(
            "the journal's URL is not valid: write 'sqlite:////path/journal.db' or 'postgresql://user@host/database'"
        ) from None
    return url.set(drivername=_DRIVERS.get(url.drivername, url.drivername))


def _check_dialect(url: URL) -> None:
    """Raise `JournalError` if no journal can be in such a database."""
    try:
        dialect = url.get_dialect()
    except (NoSuchModuleError, ArgumentError) as error:
        raise JournalError(f"the journal cannot live in {url.drivername!r}: {error}") from None
    if dialect.is_async:
        raise JournalError(f"the journal needs a blocking driver, {url.drivername} is asynchronous. Name another.")
    if dialect.name == "sqlite" and _in_memory(url):
        raise JournalError("a journal in memory forgets what it pinned: write 'sqlite:////path/journal.db'")


@functools.lru_cache(maxsize=16)
def _engine(url: URL, database: str) -> Engine:
    """One engine for all that open a journal in this process: SQLAlchemy keeps compiled statements with it.

    It keeps no connection, so processes that are forked may use it too.
    """
    dialect = url.get_dialect()
    backend, driver = dialect.name, dialect.driver
    try:
        with importing(_EXTRAS.get(backend, "postgres")), errors_of_driver(url, database):
            engine = create_engine(
                url,
                poolclass=NullPool,
                hide_parameters=True,
                connect_args=_timeout(url, backend, driver),
                # MySQL's own default would go on showing a transaction what was there before it waited for a lock
                **({} if backend == "sqlite" else {"isolation_level": "READ COMMITTED"}),
            )
    except ArgumentError as error:
        raise JournalError(f"the journal cannot live in {url.drivername!r}: {error}") from None
    if backend == "sqlite":
        event.listen(engine, "do_connect", _sqlite_make)
        event.listen(engine, "connect", _sqlite_connect)
        event.listen(engine, "begin", _sqlite_begin)
    else:

        @event.listens_for(engine, "do_connect")
        def connect(dialect: Dialect, record: object, arguments: list[Any], options: dict[str, Any]) -> Any:  # noqa: ARG001 - SQLAlchemy's event
            with errors_of_driver(url, database):
                return dialect.connect(*arguments, **options)

    return engine


def _in_memory(url: URL) -> bool:
    return not url.database or ":memory:" in url.database or url.query.get("mode") == "memory"


def _timeout(url: URL, backend: str, driver: str) -> dict[str, int]:
    if backend == "sqlite":
        return {} if "timeout" in url.query else {"timeout": BUSY_SECONDS}
    if driver in _CONNECT_TIMEOUT and "connect_timeout" not in url.query:
        return {"connect_timeout": CONNECT_SECONDS}
    return {}


def _sqlite_make(dialect: object, record: object, arguments: list[Any], options: object) -> None:  # noqa: ARG001 - as below
    """A new file is its owner's alone; SQLite gives its helper files the same mode. An older one keeps its own."""
    file = str(arguments[0])
    if not file.startswith("file:"):
        # never one that is there: to close it would take away the locks that this process has on it for SQLite
        # (https://www.sqlite.org/howtocorrupt.html, 2.2). What fails, SQLite says in its own words
        with suppress(OSError):
            os.close(os.open(file, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))


def _sqlite_connect(connection: Any, record: object) -> None:  # noqa: ARG001 - SQLAlchemy's event
    # the driver's own transactions begin too late, and never around DDL
    connection.isolation_level = None
    cursor = connection.cursor()
    # Readers do not wait for the writer. The mode stays with the file; while others use a new file, SQLite refuses
    # the change at once: one of the next connections makes it, and nothing but speed depends on it.
    with suppress(sqlite3.OperationalError):
        cursor.execute("PRAGMA journal_mode=WAL")
    cursor.execute("PRAGMA foreign_keys=ON")
    cursor.close()


def _sqlite_begin(connection: Connection) -> None:
    """A writer takes its place in the queue at once: one that upgrades later would fail instead of waiting."""
    write = connection.get_execution_options().get(_WRITE, False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if write else "BEGIN")
