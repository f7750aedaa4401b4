"""Options of a database's driver by which a connection makes it read files of the machine."""

from __future__ import annotations

from collections.abc import Iterable

from airflow_provider_streams.connections.allowed_secret_sources import admit_file
from airflow_provider_streams.errors import InvalidRequest

_FILES = (
    *("passfile", "servicefile", "sslcert", "sslkey"),  # of Postgres
    *("read_default_file", "option_files", "default_file", "ssl_cert", "ssl_key"),  # of MySQL
)
"""Files with credentials, which the driver sends or proves to the server."""
_SENDS_FILES = "local_infile"
"""Lets a server of MySQL ask for any file."""


def check_database_options(conn_id: object, options: Iterable[tuple[str, str]]) -> None:
    """Check the options of a database's address: names and values, of which a name may be there twice.

    Raises:
        InvalidRequest: one of them names a file that connections may not read, or lets the server read files.
    """
    for name, value in options:
        if name == _SENDS_FILES:
            raise InvalidRequest(
                f"connection {conn_id!r}: the option {_SENDS_FILES} would let the server read files of this machine: "
                "leave it out"
            )
        if name in _FILES and value:
            admit_file(f"connection {conn_id!r}: the option {name}", value)
