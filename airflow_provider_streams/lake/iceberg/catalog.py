"""How pyiceberg reaches a table's catalog, and what its errors mean."""

from __future__ import annotations

import importlib
import os
import re
import sys
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from http import HTTPStatus
from typing import Any
from weakref import finalize

from pyiceberg.catalog import Catalog, CatalogType, infer_catalog_type, load_catalog
from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.exceptions import ServerError, ServiceUnavailableError
from pyiceberg.io import PY_IO_IMPL
from pyiceberg.utils.config import Config
from requests import PreparedRequest, Response, Session
from requests.adapters import HTTPAdapter

from airflow_provider_streams.errors import SinkError, StreamsError, TableUnavailable
from airflow_provider_streams.lake.connections import properties_of, secrets_of
from airflow_provider_streams.lake.iceberg.lent import OwnFileIO
from airflow_provider_streams.lake.store_failures import failure_of, plain
from airflow_provider_streams.model.sink import IcebergSink
from airflow_provider_streams.redaction import conceal

ANSWER_SECONDS = 60.0
"""So long a REST catalog may say nothing: a large commit takes seconds."""

_OWN_CLASSES = {
    CatalogType.SQL: "sql:SharedSqlCatalog",
    CatalogType.HIVE: "hive:BoundedHiveCatalog",
    CatalogType.GLUE: "glue:BoundedGlueCatalog",
}
"""In place of pyiceberg's, imported when used: their clients are optional."""
_TOKENS_AT = "oauth2-server-uri"
_OWN_CATALOG = "py-catalog-impl"
_PASSING = {
    "sqlalchemy": ("OperationalError", "InterfaceError", "TimeoutError"),
    "thrift": ("TTransportException",),
    "botocore": ("ConnectionError", "HTTPClientError"),
}
"""What clients of catalogs raise where waiting may help."""
_THROTTLED = re.compile(r"Throttl|OperationTimeout|RequestLimitExceeded|ResourceNotReady|RetryableException")
_HELP = (
    (
        re.compile("NoCredentials|PartialCredentials"),
        "give glue.access-key-id and glue.secret-access-key in the connection's extra field, or the machine a role",
    ),
    (re.compile("NoRegion"), "give glue.region in the connection's extra field"),
    (
        re.compile("AccessDenied|UnrecognizedClient|InvalidSignature|InvalidClientTokenId|ExpiredToken"),
        "see that the keys are right, have not expired, and may read, create and update databases and tables there",
    ),
)
_OURS = f"{__package__}.file_io.StoreFileIO"


class BoundedRestCatalog(OwnFileIO, RestCatalog):
    """Waits for no answer for ever; pyiceberg's own does, and has no setting for it."""

    def _create_session(self) -> Session:
        session = super()._create_session()
        for scheme in ("http://", "https://"):
            session.mount(scheme, _Bounded())
        return session


class _Bounded(HTTPAdapter):
    def send(self, request: PreparedRequest, *arguments: Any, **named: Any) -> Response:
        if named.get("timeout") is None:
            named["timeout"] = ANSWER_SECONDS
        return super().send(request, *arguments, **named)


def catalog_of(sink: IcebergSink) -> Catalog:
    """The catalog of a sink's table, as its connection says, or pyiceberg's own configuration.

    Raises:
        TableUnavailable: it does not answer.
        SinkError: it cannot be used.
        InvalidRequest: nobody here knows the connection.
    """
    given = dict(properties_of(sink.conn_id))
    configured = Config().get_catalog_config(sink.where)
    properties: dict[str, Any] = {PY_IO_IMPL: _OURS, **(configured or {}), **given}
    for secret in secrets_of({name: value for name, value in properties.items() if isinstance(value, str)}):
        conceal(secret)
    with errors_of(sink):
        if not configured and not given:
            raise SinkError(
                str(sink),
                f"pyiceberg knows no catalog {sink.where!r} here: describe it in ~/.pyiceberg.yaml or "
                f"PYICEBERG_CATALOG__{sink.where.upper()}__URI, or give conn_id",
            )
        kind = None if _OWN_CATALOG in properties else _type_of(sink, properties)
        if kind is CatalogType.REST:
            return _rest(sink.where, properties)
        if kind in _OWN_CLASSES:
            return _settled(_class_of(sink, kind)(sink.where, **properties))
        return _settled(load_catalog(sink.where, **properties))


def _class_of(sink: IcebergSink, kind: CatalogType) -> Callable[..., Catalog]:
    module, _, name = _OWN_CLASSES[kind].partition(":")
    try:
        found: Callable[..., Catalog] = getattr(importlib.import_module(f"{__package__}.{module}"), name)
    except ImportError as error:
        raise SinkError(
            str(sink), f"a catalog of type {kind.value!r} needs {error.name}: pip install 'pyiceberg[{kind.value}]'"
        ) from error
    return found


def _settled(catalog: Catalog) -> Catalog:
    """One in a database, which shows nothing that it has not committed, and whose connections end with it."""
    sql = sys.modules.get("pyiceberg.catalog.sql")  # loaded with the first such catalog; others need no SQLAlchemy
    if sql is not None and isinstance(catalog, sql.SqlCatalog):
        from sqlalchemy import event  # noqa: PLC0415 - optional

        event.listen(catalog.engine, "reset", _roll_back)
        finalize(catalog, _close, catalog.engine, os.getpid())  # its pool would leave them to the collector
    return catalog


def _close(engine: Any, pid: int) -> None:
    """The connections of the process that made them; in one that was forked from it, they are not ours to end."""
    engine.dispose(close=os.getpid() == pid)


def _roll_back(connection: Any, record: object, state: object) -> None:  # noqa: ARG001 - SQLAlchemy's event
    """Once more than the pool, which takes a transaction whose commit failed for ended.

    In SQLite, where others were reading for too long, it is still open: who looked by the same connection whether the
    commit came through would see what nobody else ever will.
    """
    connection.rollback()


def _type_of(sink: IcebergSink, properties: Mapping[str, Any]) -> CatalogType | None:
    """As it is said, else as the catalog's address tells.

    Raises:
        SinkError: nothing tells it, or it is none that pyiceberg knows.
    """
    named, uri = str(properties.get("type") or "").lower(), properties.get("uri")
    known = ", ".join(one.value for one in CatalogType)
    if named and named not in {one.value for one in CatalogType}:
        raise SinkError(str(sink), f"pyiceberg knows no catalog of type {named!r}: type is one of {known}")
    if not uri and named in ("", CatalogType.REST.value, CatalogType.HIVE.value):
        raise SinkError(
            str(sink),
            f"nothing says where the catalog {sink.where!r} is: give its uri (the host of a connection), or a type "
            f"that needs none; known types: {known}",
        )
    return CatalogType(named) if named else infer_catalog_type(sink.where, dict(properties))


def _rest(name: str, properties: dict[str, Any]) -> Catalog:
    if "credential" in properties:
        # what pyiceberg takes by itself, with a warning
        properties.setdefault(_TOKENS_AT, f"{properties['uri'].rstrip('/')}/v1/oauth/tokens")
    return BoundedRestCatalog(name, **properties)


@contextmanager
def errors_of(sink: IcebergSink, *, is_lent: bool = False) -> Iterator[None]:
    """What goes wrong inside is the table's.

    Args:
        sink: whose table it is.
        is_lent: whether its files are reached with what the catalog lends.

    Raises:
        TableUnavailable: the catalog or the store does not answer, or fails for a while.
        SinkError: anything else.
    """
    try:
        yield
    except StreamsError:
        raise
    except OSError as error:
        raise failure_of(str(sink), words_of(error), error, is_lent=is_lent) from error
    except Exception as error:
        kind = TableUnavailable if _is_passing(error) else SinkError
        raise kind(str(sink), words_of(error) + _help_for(error)) from error


def _is_passing(error: Exception) -> bool:
    """Whether the same call may succeed later: the server failed."""
    if isinstance(error, ServerError | ServiceUnavailableError):
        return True
    if _is_one_of(error, "botocore", ("ClientError",)):
        return _status_of(error) >= HTTPStatus.INTERNAL_SERVER_ERROR or bool(_THROTTLED.search(str(error)))
    return any(_is_one_of(error, package, names) for package, names in _PASSING.items())


def _help_for(error: Exception) -> str:
    """What to do about an answer of Amazon's client; it says what is wrong, and not where that stands."""
    if not type(error).__module__.startswith("botocore."):
        return ""
    return next((f": {text}" for known, text in _HELP if known.search(words_of(error))), "")


def _is_one_of(error: Exception, package: str, names: Collection[str]) -> bool:
    """By name: where a client is not installed, nothing of its comes up."""
    return any(one.__module__.startswith(f"{package}.") and one.__name__ in names for one in type(error).__mro__)


def _status_of(error: Exception) -> int:
    metadata = getattr(error, "response", {}).get("ResponseMetadata", {})
    return int(metadata.get("HTTPStatusCode", 0))


def words_of(error: BaseException) -> str:
    """One line."""
    return f"{type(error).__name__}: {plain(str(error))}"
