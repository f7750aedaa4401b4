"""How pyiceberg reaches a table's catalog, and what its errors mean."""

from __future__ import annotations

import importlib
import io
import os
import re
import sys
import traceback
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from http import HTTPStatus
from pathlib import Path
from typing import Any
from urllib.parse import urljoin, urlsplit
from weakref import finalize

from pyiceberg.catalog import AVAILABLE_CATALOGS, URI, Catalog, CatalogType, infer_catalog_type, load_catalog
from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.catalog.rest.auth import AuthManager
from pyiceberg.exceptions import ServerError, ServiceUnavailableError
from pyiceberg.io import PY_IO_IMPL
from pyiceberg.table import CommitTableResponse, Table
from pyiceberg.table.update import TableRequirement, TableUpdate
from pyiceberg.utils.config import Config
from requests import PreparedRequest, Response, Session
from requests.adapters import BaseAdapter

from airflow_provider_streams.errors import RedirectRefused, SinkError, StreamsError, TableUnavailable
from airflow_provider_streams.errors.databases import Meaning, meaning_of, why_read_only
from airflow_provider_streams.lake.connections import properties_of, secrets_of
from airflow_provider_streams.lake.iceberg.catalogs.answered_properties import accepted, check_sendable, forget_code
from airflow_provider_streams.lake.iceberg.catalogs.catalog_answers import CORRECT, NO_ADDRESS, check_answer, is_address
from airflow_provider_streams.lake.iceberg.catalogs.shared_snapshots import SharedSnapshots
from airflow_provider_streams.lake.iceberg.files.file_io import StoreFileIO, VendedCredentialsFileIO
from airflow_provider_streams.lake.storage_errors import failure_of, plain
from airflow_provider_streams.model.sinks.sink import IcebergSink
from airflow_provider_streams.redaction import redact, register_secret, remember

ANSWER_SECONDS = 60.0
"""How long a REST catalog may be silent: a large commit takes seconds."""

_OWN_CLASSES = {
    CatalogType.SQL: "sql:SharedSqlCatalog",
    CatalogType.HIVE: "hive:BoundedHiveCatalog",
    CatalogType.GLUE: "glue:BoundedGlueCatalog",
    CatalogType.DYNAMODB: "dynamodb:CheckedDynamoDbCatalog",
}
"""Our classes instead of pyiceberg's, imported when used: their clients are optional."""
_TOKENS_AT = "oauth2-server-uri"
_OWN_CATALOG = "py-catalog-impl"
_PASSING = {
    "sqlalchemy": ("OperationalError", "InterfaceError", "TimeoutError"),
    "thrift": ("TTransportException",),
    "botocore": ("ConnectionError", "HTTPClientError"),
}
"""Errors of catalogs' clients after which waiting may help."""
_THROTTLED = re.compile(r"Throttl|OperationTimeout|RequestLimitExceeded|ResourceNotReady|RetryableException")
_HELP = (
    (
        re.compile("NoCredentials|PartialCredentials"),
        "give glue.access-key-id and glue.secret-access-key (DynamoDB: dynamodb.*) in the extra, or the machine a role",
    ),
    (
        re.compile("ProfileNotFound"),
        "give keys, or correct the environment variable AWS_PROFILE or the extra glue.profile-name (dynamodb.*)",
    ),
    (re.compile("NoRegion"), "give glue.region (DynamoDB: dynamodb.region) in the connection's extra field"),
    (
        re.compile("AccessDenied|UnrecognizedClient|InvalidSignature|InvalidClientTokenId|ExpiredToken"),
        "see that the keys are right, have not expired, and may read, create and update databases and tables there",
    ),
)
_WRONG_PROPERTIES = re.compile("Could not parse table property|Unsupported metrics mode")
"""What pyiceberg says of values in a table's properties."""
_SPELLABLE = re.compile("[A-Za-z0-9]+([_-][A-Za-z0-9]+)*")
"""Names of catalogs that an environment variable can hold between two underscores each."""
_OURS = f"{StoreFileIO.__module__}.{StoreFileIO.__name__}"


class BoundedRestCatalog(SharedSnapshots, VendedCredentialsFileIO, RestCatalog):
    """Has a timeout, and leads no secret out of TLS. pyiceberg's own waits for ever, and has no setting for it.

    What the user wrote of the catalog decides on authentication alone: neither its answers nor a netrc file do.
    """

    def __init__(self, name: str, **properties: str) -> None:
        self._written = properties
        super().__init__(name, **properties)

    @property
    def written(self) -> Mapping[str, Any]:
        """See `VendedCredentialsFileIO`."""
        return self._written

    def _fetch_config(self) -> None:
        """Take of the catalog's configuration what an answer may set.

        Raises:
            RedirectRefused: it leads secrets out of TLS, or to another host.
            SinkError: one of its properties cannot be used.
        """
        super()._fetch_config()
        answered = {name: value for name, value in self.properties.items() if value != self._written.get(name)}
        self.properties = {**self._written, **accepted(f"catalog {self.name!r}", answered)}
        check_answer(self._written, self.properties)
        self.uri = self.properties[URI]

    def commit_table(
        self, table: Table, requirements: tuple[TableRequirement, ...], updates: tuple[TableUpdate, ...]
    ) -> CommitTableResponse:
        """See `Catalog`. Another writer's code is not among the properties that the answer gives."""
        response: CommitTableResponse = super().commit_table(table, requirements, updates)
        forget_code(response.metadata.properties)
        return response

    def _create_session(self) -> Session:
        return _bounded(super()._create_session())

    def _create_legacy_oauth2_auth_manager(self, session: Session) -> AuthManager:
        return super()._create_legacy_oauth2_auth_manager(_bounded(session))  # it sends the client's secret at once


def _bounded(session: Session) -> Session:
    session.trust_env = False  # requests would send the machine's netrc login; see `_Bounded` for the rest of it
    for prefix, adapter in [*session.adapters.items()]:
        if not isinstance(adapter, _Bounded):
            session.mount(prefix, _Bounded(adapter))
    session.hooks["response"] = [_keep_to_host]
    return session


def _keep_to_host(response: Response, *_: object, **_named: object) -> None:
    """Follow no redirect out of TLS or to another host: it would send the same headers and the same body.

    Raises:
        RedirectRefused: the catalog asks for that.
    """
    if not response.is_redirect:
        return
    here, there = response.url, _led_to(response)
    if not is_address(there, needs_scheme=True):
        response.close()
        raise RedirectRefused(_host_of(here), NO_ADDRESS, "clients would see different hosts in it", CORRECT)
    if urlsplit(here).scheme == "https" and urlsplit(there).scheme != "https":
        response.close()
        fix = "The catalog must lead to https://; with a proxy in front of it, correct the catalog's own address."
        raise RedirectRefused(_host_of(here), _host_of(there), "without TLS, although the connection uses TLS", fix)
    if urlsplit(here).hostname != urlsplit(there).hostname:
        response.close()
        fix = "If that is right, give that address: the connection's host, or its extra oauth2-server-uri."
        raise RedirectRefused(_host_of(here), _host_of(there), "another host, which would get our secrets", fix)


def _led_to(response: Response) -> str:
    try:
        return urljoin(response.url, response.headers.get("Location", ""))
    except ValueError:
        return ""


def _host_of(url: str) -> str:
    """An address as errors show it."""
    split = urlsplit(url)
    return f"{split.scheme}://{split.netloc.rpartition('@')[2]}"


class _Bounded(BaseAdapter):
    """Has a timeout, and keeps the secrets of requests and answers out of errors.

    Of the environment, it takes proxies and certificate authorities, as requests does.
    """

    def __init__(self, adapter: BaseAdapter) -> None:
        super().__init__()
        self._adapter = adapter

    def send(self, request: PreparedRequest, *arguments: Any, **named: Any) -> Response:
        """See `BaseAdapter`."""
        if named.get("timeout") is None:
            named["timeout"] = ANSWER_SECONDS
        _, _, sent = str(request.headers.get("Authorization") or "").partition(" ")
        if sent != str(None):  # what pyiceberg sends without a token
            remember(sent)
        known = [named.get(name) for name in ("stream", "verify", "cert")]
        named |= _ENVIRONMENT.merge_environment_settings(str(request.url), {**(named.get("proxies") or {})}, *known)
        response = self._adapter.send(request, *arguments, **named)
        if response.status_code >= HTTPStatus.BAD_REQUEST:  # pyiceberg's errors quote it
            response.raw = _read(response, redact)
        elif request.headers.get("Content-type") == _FORM:  # it asks for a token
            response.raw = _read(response, _with_tokens_remembered)
        return response

    def close(self) -> None:
        """See `BaseAdapter`."""
        self._adapter.close()


_ENVIRONMENT = Session()
"""Reads what the environment says of proxies and certificate authorities, and sends nothing."""
_FORM = "application/x-www-form-urlencoded"
_TOKEN = re.compile(r'"\w*token"\s*:\s*"([^"]+)"')
"""A token in an answer, also in one that is no JSON."""


def _read(response: Response, change: Callable[[str], str]) -> io.BytesIO:
    """The body of an answer, read and changed."""
    return io.BytesIO(change(response.raw.read(decode_content=True).decode(errors="replace")).encode())


def _with_tokens_remembered(text: str) -> str:
    for token in _TOKEN.findall(text):
        remember(token)
    return text


def catalog_of(sink: IcebergSink) -> Catalog:
    """The catalog of a sink's table, by its connection alone, or without one by pyiceberg's own configuration.

    Raises as `errors_of`; `InvalidRequest`: the connection is not known in this process.
    """
    given = dict(properties_of(sink.conn_id))
    configured = _configured(sink.where) if sink.conn_id is None else None
    properties: dict[str, Any] = {PY_IO_IMPL: _OURS, **(configured or {}), **given}
    for secret in secrets_of({name: value for name, value in properties.items() if isinstance(value, str)}):
        register_secret(secret)
    with errors_of(sink):
        if not configured and sink.conn_id is None:
            raise SinkError(
                str(sink),
                f"pyiceberg knows no catalog {sink.where!r} here: describe it in ~/.pyiceberg.yaml"
                f"{_variable_for(sink.where)}, or give conn_id",
            )
        check_sendable(str(sink), properties)
        kind = None if _OWN_CATALOG in properties else _type_of(sink, properties)
        if kind is CatalogType.REST:
            if "credential" in properties:  # pyiceberg's default, which it would warn about
                properties.setdefault(_TOKENS_AT, f"{properties['uri'].rstrip('/')}/v1/oauth/tokens")
            return BoundedRestCatalog(sink.where, **properties)
        if kind in _OWN_CLASSES:
            return _settled(_class_of(sink, kind)(sink.where, **properties))
        if kind is None:  # of a class that only pyiceberg's configuration may name
            return _settled(load_catalog(sink.where, **properties))
        # load_catalog would merge pyiceberg's configuration of a catalog that has the connection's name
        return _settled(AVAILABLE_CATALOGS[kind](sink.where, properties))


def _configured(name: str) -> Mapping[str, Any] | None:
    """What pyiceberg's own configuration says of a catalog; of `my-cat` in place of `my_cat`, if that is not there.

    pyiceberg turns underscores in names of environment variables into hyphens, so no variable describes `my_cat`.
    """
    config = Config()
    return config.get_catalog_config(name) or config.get_catalog_config(name.replace("_", "-"))


def _variable_for(name: str) -> str:
    """The environment variable that may describe a catalog; empty: none can."""
    return f" or PYICEBERG_CATALOG__{name.upper().replace('-', '_')}__URI" if _SPELLABLE.fullmatch(name) else ""


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
    """Let a catalog in a database roll back refused commits, and close its connections when it is dropped."""
    sql = sys.modules.get("pyiceberg.catalog.sql")  # loaded with the first such catalog; others need no SQLAlchemy
    if sql is not None and isinstance(catalog, sql.SqlCatalog):
        from sqlalchemy import event  # noqa: PLC0415 - optional

        event.listen(catalog.engine, "reset", _roll_back)
        finalize(catalog, _close, catalog.engine, os.getpid())  # its pool leaves them to the garbage collector
    return catalog


def why_catalog_is_read_only(catalog: Catalog) -> str:
    """Why this user cannot write a catalog's SQLite file; empty: it can, or the catalog is another one."""
    engine = getattr(catalog, "engine", None)  # of a catalog in a database
    file = engine.url.database if engine is not None and engine.dialect.name == "sqlite" else None
    return why_read_only(Path(file)) if file and Path(file).is_file() else ""


def _close(engine: Any, pid: int) -> None:
    """Close the connections, but only in the process that made them: a forked one must not."""
    engine.dispose(close=os.getpid() == pid)


def _roll_back(connection: Any, record: object, state: object) -> None:  # noqa: ARG001 - SQLAlchemy's event
    """Roll back once more than the pool, which believes that a failed commit ends the transaction.

    In SQLite, the transaction stays open if others read for too long. On the same connection, the commit would then
    look as if it came through, though no other connection will ever see it.
    """
    connection.rollback()


def _type_of(sink: IcebergSink, properties: Mapping[str, Any]) -> CatalogType | None:
    """The type that the properties name, or that the address implies. `SinkError`: pyiceberg knows no such type."""
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


@contextmanager
def errors_of(sink: IcebergSink, *, uses_vended_credentials: bool = False) -> Iterator[None]:
    """Raise errors as `TableUnavailable` if catalog or store may work again, else as `SinkError`.

    `uses_vended_credentials`: whether the catalog vended the credentials for the files.
    """
    try:
        yield
    except StreamsError:
        raise
    except OSError as error:
        raise failure_of(str(sink), words_of(error), error, uses_vended_credentials=uses_vended_credentials) from error
    except Exception as error:
        kind = TableUnavailable if _is_passing(error) else SinkError
        raise kind(str(sink), words_of(error) + _help_for(error)) from error


def _is_passing(error: Exception) -> bool:
    """Whether the same call may succeed later: the server failed."""
    if isinstance(error, ServerError | ServiceUnavailableError):
        return True
    if _is_one_of(error, "botocore", ("ClientError",)):
        status = getattr(error, "response", {}).get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
        return int(status) >= HTTPStatus.INTERNAL_SERVER_ERROR or bool(_THROTTLED.search(str(error)))
    if meaning := _meaning_of(error):
        return meaning.passes
    return any(_is_one_of(error, package, names) for package, names in _PASSING.items())


def _meaning_of(error: Exception) -> Meaning | None:
    """What an error of a catalog in a SQL database means, if that is known."""
    driver_error = getattr(error, "orig", None)  # SQLAlchemy's errors have it
    return meaning_of(driver_error) if isinstance(driver_error, Exception) else None


def _help_for(error: Exception) -> str:
    """What to do about an error whose text does not say where to correct it."""
    if meaning := _meaning_of(error):
        return f": {meaning.advice}"
    if _WRONG_PROPERTIES.search(str(error)):
        return ": correct the properties of the table (commit.manifest.*, write.metadata.metrics.*)"
    if isinstance(error, KeyError) and _raised_in(error) == "pyiceberg.catalog.glue":
        return ": Glue's answer lacks it: see that its address (glue.endpoint, AWS_ENDPOINT_URL) is one of Glue"
    if not type(error).__module__.startswith("botocore."):
        return ""
    return next((f": {text}" for known, text in _HELP if known.search(words_of(error))), "")


def _raised_in(error: Exception) -> str:
    """The name of the module that raised an error."""
    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
    return str(frames[-1].f_globals.get("__name__", ""))


def _is_one_of(error: Exception, package: str, names: Collection[str]) -> bool:
    """Compares names, for the client may not be installed."""
    return any(one.__module__.startswith(f"{package}.") and one.__name__ in names for one in type(error).__mro__)


def words_of(error: BaseException) -> str:
    """An error as one line."""
    return f"{type(error).__name__}: {plain(str(error))}"
