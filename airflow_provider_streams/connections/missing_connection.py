"""The error for a connection that does not exist, with the nearest name of one that would do."""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Iterator
from typing import Final

from airflow.providers.common.compat.sdk import conf

from airflow_provider_streams.errors import InvalidRequest
from airflow_provider_streams.model.name_suggestion import nearest_name

_VARIABLE: Final = "AIRFLOW_CONN_"


def no_connection(conn_id: str, types: Collection[str], advice: str) -> InvalidRequest:
    """The error for a connection that does not exist.

    Args:
        conn_id: its name.
        types: the connection types that would do; only such connections are suggested.
        advice: what to do.

    Raises:
        InvalidRequest: it does exist, and Airflow cannot read it.
    """
    refuse_unreadable(conn_id)
    near = nearest_name(conn_id, {name for name, type_ in _known() if type_ in types})
    return InvalidRequest(
        f"connection {conn_id!r} does not exist{f'; did you mean {near!r}?' if near else ':'} {advice}{_of_backend()}"
    )


def _of_backend() -> str:
    """Airflow only logs why it passes over what a secrets backend holds."""
    for section, option in (("secrets", "backend"), ("workers", "secrets_backend")):
        if name := str(conf.get(section, option, fallback="") or "").rpartition(".")[2]:
            return f". If the secrets backend {name} holds it, Airflow could not read it: its log says why"
    return ""


def refuse_unreadable(conn_id: str) -> None:
    """Say what is wrong with a connection's variable, of which Airflow only logs that it passes over it.

    Raises:
        InvalidRequest: there is such a variable. Its value is not shown.
    """
    variable = f"{_VARIABLE}{conn_id.upper()}"
    text = os.environ.get(variable)
    if text:
        raise InvalidRequest(
            f"connection {conn_id!r}: Airflow cannot read the environment variable {variable}: {_problem(text)}"
        )


def _problem(text: str) -> str:
    return _problem_of_json(text) if text.lstrip().startswith("{") else _problem_of_uri(text)


def _problem_of_json(text: str) -> str:
    try:
        given = json.loads(text)
    except ValueError:
        return "it is not JSON"
    if unknown := sorted(given.keys() - _FIELDS):
        return f"it has {', '.join(map(repr, unknown))}, and may only have {', '.join(sorted(_FIELDS))}"
    return "its port must be a whole number, and its extra an object"


_FIELDS: Final = frozenset(("conn_type", "description", "host", "login", "password", "schema", "port", "extra"))


def _problem_of_uri(text: str) -> str:
    """Airflow's own message would show what it takes for the port, and that may be the start of a password."""
    if "://" in text.partition("?")[2]:
        return "percent-encode the addresses after the ? of its URI (:// is %3A%2F%2F, + is %2B), or write it as JSON"
    return (
        "its URI cannot be taken apart. Percent-encode / ? # @ : [ ] in login and password (/ is %2F), and the ports "
        "of several hosts (%3A); or write it as JSON"
    )


def _known() -> list[tuple[str, str]]:
    """Name and type of the connections that can be listed: variables, and the database of a server or a command."""
    of_variables = list(_of_variables())
    if os.environ.get("_AIRFLOW_PROCESS_CONTEXT") != "server":
        return of_variables  # a task has no database
    try:
        return of_variables + _of_database()
    except Exception:  # noqa: BLE001 - a missing suggestion must not hide the error
        return of_variables


def _of_variables() -> Iterator[tuple[str, str]]:
    for name, value in os.environ.items():
        if name.startswith(_VARIABLE):
            yield name.removeprefix(_VARIABLE).lower(), _type_of(value)


def _type_of(value: str) -> str:
    """The connection type in the JSON or URI of a variable, as Airflow takes it."""
    type_ = value.partition("://")[0]
    if value.lstrip().startswith("{"):
        try:
            type_ = str(json.loads(value).get("conn_type") or "")
        except ValueError:
            return ""
    return type_.replace("-", "_").lower()


def _of_database() -> list[tuple[str, str]]:
    from airflow.models.connection import Connection  # noqa: PLC0415 - Airflow's own side
    from airflow.utils.session import create_session  # noqa: PLC0415
    from sqlalchemy import select  # noqa: PLC0415

    with create_session() as session:
        return [
            (name, type_ or "") for name, type_ in session.execute(select(Connection.conn_id, Connection.conn_type))
        ]
