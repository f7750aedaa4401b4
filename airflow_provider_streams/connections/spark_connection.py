"""What a Spark connection may say: the Spark provider's own hooks leave out, or misread, whatever they do not expect.

| type | read by | fields | extras |
|---|---|---|---|
| `spark_connect` | `SparkConnectHook` | host, port, login (user id), password (token) | `use_ssl` |
| `spark`, `yarn`, `k8s`, `local` | `SparkSubmitHook` | host, port: the master | as below |

The extra `spark` is ours.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from airflow_provider_streams.connections.extra import extra_of
from airflow_provider_streams.connections.unused_settings import refuse_fields
from airflow_provider_streams.errors import InvalidRequest
from airflow_provider_streams.model.name_suggestion import nearest_name
from airflow_provider_streams.systems.connection.address import scheme_of

if TYPE_CHECKING:
    from airflow.sdk import Connection

_log = logging.getLogger(__name__)

CONNECT: Final = "spark_connect"
TYPES: Final = frozenset({CONNECT, "spark", "yarn", "k8s", "local"})
_OWN: Final = "spark"
_EXTRAS_OF_CONNECT: Final = (_OWN, "use_ssl")
_EXTRAS_OF_SUBMIT: Final = (
    *(_OWN, "queue", "deploy-mode", "spark-binary", "spark-home", "namespace", "principal", "keytab"),
    *("rest-scheme", "rest-port", "yarn_resourcemanager_webapp_address"),
)
_MASTERS: Final = ("spark", "k8s")
_NEAR: Final = 0.7


def check_spark_connection(connection: Connection) -> None:
    """Check what the hooks would leave out, or pass on to Spark's own stack traces.

    Raises:
        InvalidRequest: another type; a host that Spark cannot take; a field that is not used; or an extra that is
            nearly a known one. It shows no value but types.
    """
    named = f"connection {connection.conn_id!r}"
    if connection.conn_type not in TYPES:
        raise InvalidRequest(
            f"{named} is of type {connection.conn_type!r}: reading needs one of type 'spark' or "
            f"{CONNECT!r}, or none (Spark inside the task)"
        )
    is_connect = connection.conn_type == CONNECT
    problem = _problem_of_server(connection) if is_connect else _problem_of_master(connection)
    if problem:
        raise InvalidRequest(f"{named} of type {connection.conn_type!r}: {problem}")
    unused = ("schema",) if is_connect else ("login", "password", "schema")
    refuse_fields(connection, dict.fromkeys(unused, "secrets and settings belong in the extra 'spark'"))
    _check_extras(named, connection, _EXTRAS_OF_CONNECT if is_connect else _EXTRAS_OF_SUBMIT)


def _problem_of_server(connection: Connection) -> str:
    host = (connection.host or "").strip()
    scheme = scheme_of(host)
    if scheme not in ("", "sc"):
        return "host has another scheme than sc://, which a Spark Connect server has; TLS is the extra use_ssl"
    rest = host.partition("://")[2] if scheme else host
    if not rest:
        return "host is empty: write the Spark Connect server's name"
    if any(mark in rest for mark in "/;?#@"):
        return (
            "host holds more than a name: leave out path and parameters. The token is the field password, the user id "
            "the field login, and TLS the extra use_ssl"
        )
    return ""


def _problem_of_master(connection: Connection) -> str:
    scheme = scheme_of(connection.host or "")
    if connection.conn_type == "spark" and scheme not in ("", *_MASTERS):
        return (
            "host has a scheme that no master has: write spark://HOST, k8s://https://HOST, yarn or local[*]; or reach "
            f"a Spark Connect server with the type {CONNECT!r}"
        )
    return ""


def _check_extras(named: str, connection: Connection, known: tuple[str, ...]) -> None:
    """Refuse a near miss, and tell of any other extra: a newer Spark provider may read it."""
    for name, value in extra_of(connection).items():
        if name in known or value in (None, ""):
            continue
        if near := nearest_name(name, known, likeness=_NEAR):
            raise InvalidRequest(f"{named}: extra {name!r} is not known; did you mean {near!r}?")
        _log.warning("%s: nothing here reads the extra %r; known: %s", named, name, ", ".join(known))
