"""How pyiceberg reaches a table's catalog."""

from __future__ import annotations

import importlib
import os
import re
import sys
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any
from weakref import finalize

from pyiceberg.catalog import AVAILABLE_CATALOGS, Catalog, CatalogType, infer_catalog_type, load_catalog
from pyiceberg.io import PY_IO_IMPL
from pyiceberg.utils.config import Config

from airflow_provider_streams.errors import SinkError
from airflow_provider_streams.errors.databases import why_read_only
from airflow_provider_streams.lake.connections import properties_of, secrets_of
from airflow_provider_streams.lake.iceberg.catalogs.answered_properties import check_sendable
from airflow_provider_streams.lake.iceberg.catalogs.catalog_errors import errors_of
from airflow_provider_streams.lake.iceberg.files.file_io import StoreFileIO
from airflow_provider_streams.model.sinks.sink import IcebergSink
from airflow_provider_streams.redaction import register_secret

if TYPE_CHECKING:
    from airflow_provider_streams.lake.iceberg.catalogs.sql import SharedSqlCatalog

_OWN_CLASSES = {
    CatalogType.REST: "rest:BoundedRestCatalog",
    CatalogType.SQL: "sql:SharedSqlCatalog",
    CatalogType.HIVE: "hive:BoundedHiveCatalog",
    CatalogType.GLUE: "glue:BoundedGlueCatalog",
    CatalogType.DYNAMODB: "dynamodb:CheckedDynamoDbCatalog",
}
"""Our classes instead of pyiceberg's, imported when used: their clients are optional."""
_OWN_CATALOG = "py-catalog-impl"
_SPELLABLE = re.compile("[A-Za-z0-9]+([_-][A-Za-z0-9]+)*")
"""Names of catalogs that an environment variable can hold between two underscores each."""
_OURS = f"{StoreFileIO.__module__}.{StoreFileIO.__name__}"


def catalog_of(sink: IcebergSink, *, makes_tables: bool = True) -> Catalog:
    """The catalog of a sink's table, by its connection alone, or without one by pyiceberg's own configuration.

    Args:
        sink: names the table.
        makes_tables: whether a catalog in a database makes its own tables, if they are not there yet.

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
        if kind is CatalogType.SQL and not makes_tables:
            properties["init_catalog_tables"] = "false"
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
    own = in_database(catalog)
    file = own and own.file
    return why_read_only(file) if file else ""


def is_absent(catalog: Catalog) -> bool:
    """Whether a catalog in a database is not there yet, so that the first landing makes it."""
    own = in_database(catalog)
    return own is not None and own.is_absent()


def catalog_to_change(sink: IcebergSink, looked_in: Catalog) -> Catalog:
    """A catalog that was only looked in, ready for changes: its own tables are there, made now if need be."""
    return catalog_of(sink) if is_absent(looked_in) else looked_in


def in_database(catalog: Catalog) -> SharedSqlCatalog | None:
    """A catalog of ours in a database; None: it is another one, which may need no SQLAlchemy."""
    loaded = sys.modules.get(f"{__package__}.sql")
    return catalog if loaded is not None and isinstance(catalog, loaded.SharedSqlCatalog) else None


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
