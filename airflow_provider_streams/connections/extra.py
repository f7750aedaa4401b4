"""A connection's extra, which must be a JSON object: Airflow takes any other text for an empty one."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from airflow_provider_streams.airflow_features import aextra_dejson, supervisor_turn
from airflow_provider_streams.errors import InvalidRequest

if TYPE_CHECKING:
    from airflow.sdk import Connection


def extra_of(connection: Connection) -> Mapping[str, Any]:
    """A connection's extra; Airflow masks its secrets in logs.

    Raises:
        InvalidRequest: it is not a JSON object. The message does not show it.
    """
    _check(connection)
    with supervisor_turn():
        return connection.extra_dejson


async def aextra_of(connection: Connection) -> Mapping[str, Any]:
    """As `extra_of`, for an event loop."""
    _check(connection)
    return await aextra_dejson(connection)


def _check(connection: Connection) -> None:
    try:
        extra = json.loads(connection.extra or "{}")
    except (ValueError, RecursionError):  # Airflow's own class of connections refuses it when it is read
        problem = "is not JSON"
    else:
        problem = "" if isinstance(extra, dict) else f"is JSON, but {_KINDS[type(extra)]} and not an object"
    if problem:
        # raised outside of `except`: the parser's error holds the text, and so perhaps a secret
        raise InvalidRequest(
            f'connection {connection.conn_id!r}: its extra {problem}. Write an object, like {{"name": "value"}}'
        )


_KINDS: Mapping[type, str] = {
    list: "a list",
    str: "a text",
    bool: "true or false",
    int: "a number",
    float: "a number",
    type(None): "null",
}
