"""Fields and extras of a connection that nothing here reads: a setting there would be left out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from airflow_provider_streams.errors import InvalidRequest

if TYPE_CHECKING:
    from airflow.sdk import Connection


def refuse_fields(connection: Connection, unused: Mapping[str, str], kind: str | None = None) -> None:
    """Refuse a field that is not used.

    Args:
        connection: of a hook or a table.
        unused: the fields, and where the content of each belongs.
        kind: its type, if that says more than the connection's own.

    Raises:
        InvalidRequest: such a field has a value, which is not shown.
    """
    _refuse(connection, "field", {name: getattr(connection, name) or "" for name in unused}, unused, kind)


def refuse_extras(connection: Connection, extra: Mapping[str, object], unused: Mapping[str, str]) -> None:
    """As `refuse_fields`, for extras."""
    _refuse(connection, "extra", extra, unused, None)


def _refuse(
    connection: Connection, what: str, given: Mapping[str, object], unused: Mapping[str, str], kind: str | None
) -> None:
    for name, advice in unused.items():
        if given.get(name) not in (None, ""):
            raise InvalidRequest(
                f"connection {connection.conn_id!r} of type {kind or connection.conn_type!r} does not use the {what} "
                f"{name}, which must be empty: {advice}"
            )
