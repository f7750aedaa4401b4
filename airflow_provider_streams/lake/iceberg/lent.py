"""What a catalog lends with a table, so that its files can be reached: keys that end after a while."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pyiceberg.catalog import Catalog
from pyiceberg.io import PY_IO_IMPL, FileIO

from airflow_provider_streams.errors import SinkError
from airflow_provider_streams.lake.connections import secrets_of
from airflow_provider_streams.lake.storage import is_true
from airflow_provider_streams.redaction import remember

_KEYS = frozenset(("s3.access-key-id", "client.access-key-id"))
_OF_A_KEY = tuple(
    f"{family}.{name}"
    for family in ("s3", "client")
    for name in ("access-key-id", "secret-access-key", "session-token", "role-arn")
)
"""What belongs together: a lent key with the session of another one is refused by every store."""


def in_place_of_own(told: Mapping[str, Any]) -> dict[str, Any]:
    """What a catalog tells of a table, with nothing left of the connection's own key where it lends one."""
    own = dict.fromkeys(_OF_A_KEY, "") if _KEYS & told.keys() else {}
    return {**own, **told}


class OwnFileIO(Catalog):
    """What it tells of a table takes the place of the connection's own keys as a whole, and names no code to load."""

    def _load_file_io(self, properties: Mapping[str, Any] = {}, location: str | None = None) -> FileIO:
        told = {name: value for name, value in properties.items() if name != PY_IO_IMPL}
        return super()._load_file_io(in_place_of_own(told), location)


def is_lent(catalog: Catalog, options: Mapping[str, str]) -> bool:
    """Whether some of the secrets that reach a table's files are not those of its catalog's connection."""
    own = secrets_of({name: value for name, value in catalog.properties.items() if isinstance(value, str)})
    return not set(secrets_of(options)) <= set(own)


def check(target: str, options: Mapping[str, str]) -> None:
    """See that a table's files can be reached with what is told of them, which no error shows from now on.

    Raises:
        SinkError: the catalog wants to sign every request itself.
    """
    for secret in secrets_of(options):
        remember(secret)
    if is_true(options.get("s3.remote-signing-enabled", "")) and not options.get("s3.access-key-id"):
        raise SinkError(
            target,
            "its catalog lends no keys for the table's files, and wants to sign every request to the store itself "
            "(s3.remote-signing-enabled), which the tasks that write cannot ask for: let it lend credentials, or give "
            "keys in the connection",
        )
