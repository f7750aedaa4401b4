"""How pyiceberg reads and writes a table's files: like the tasks, with the same options and vended credentials."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pyarrow.fs import FileSystem
from pyiceberg.catalog import Catalog
from pyiceberg.io import FileIO
from pyiceberg.io.pyarrow import PyArrowFileIO

from airflow_provider_streams.errors import SinkError
from airflow_provider_streams.lake.connections import secrets_of
from airflow_provider_streams.lake.iceberg.catalogs.answered_properties import accepted, check_loads_no_code
from airflow_provider_streams.lake.iceberg.catalogs.catalog_answers import check_answer
from airflow_provider_streams.lake.iceberg.files.locations import check_location, is_local
from airflow_provider_streams.lake.storage import BUCKET_SCHEMES, Storage, is_true, path_in
from airflow_provider_streams.redaction import remember

_ID, _SECRET, _SESSION = "access-key-id", "secret-access-key", "session-token"
_OF_A_KEY = tuple(f"{family}.{name}" for family in ("s3", "client") for name in (_ID, _SECRET, _SESSION, "role-arn"))
"""What belongs together: stores refuse a vended key with the session of another key."""
_IN_STORE = "streams.table-in-store"
"""A property of the file IO of a table that is in no folder of this machine: the place of its metadata."""


class StoreFileIO(PyArrowFileIO):
    """Reaches buckets by our `Storage`.

    pyiceberg's own takes no certificate authority, asks Amazon where a bucket is, and does not know the usual form of
    Azure's addresses, `abfss://container@account.dfs.core.windows.net/..`.
    """

    @staticmethod
    def parse_location(location: str, properties: dict[str, Any] = {}) -> tuple[str, str, str]:  # noqa: B006
        """Scheme, host, and the path as its file system calls it.

        Raises:
            SinkError: pyiceberg would take another path, or the file is this machine's own, of a table in a store.
        """
        check_location(location)
        if _IN_STORE in properties and is_local(location):
            raise SinkError(
                location,
                f"the metadata of a table at {properties[_IN_STORE]} name this path of each machine's own as one of "
                "its files. It is not opened: correct the table, or see who wrote that",
            )
        scheme, netloc, path = PyArrowFileIO.parse_location(location, properties)
        if scheme in BUCKET_SCHEMES:
            path = path_in(scheme, netloc, path.removeprefix(netloc))
        return scheme, netloc, path

    def _initialize_fs(self, scheme: str, netloc: str | None = None) -> FileSystem:
        if scheme not in BUCKET_SCHEMES:
            return super()._initialize_fs(scheme, netloc)
        options = {name: str(value) for name, value in self.properties.items() if isinstance(value, str | int)}
        return Storage(f"{scheme}://{netloc or ''}", options).open()[0]


class VendedCredentialsFileIO(Catalog):
    """A catalog's properties of a table replace the connection's keys as a whole, and name no code to load."""

    @property
    def written(self) -> Mapping[str, Any]:
        """What the user wrote of the catalog."""
        return self.properties

    def _load_file_io(self, properties: Mapping[str, Any] = {}, location: str | None = None) -> FileIO:
        """See `Catalog`. From now on, no error shows the secrets among the properties.

        Raises:
            RedirectRefused: the table's properties lead secrets out of TLS, or to another host.
            SinkError: they name code that pyiceberg would load at a write, hold a part of a key, or one cannot be used.
        """
        check_loads_no_code(location or self.name, properties)
        for secret in secrets_of({name: value for name, value in properties.items() if isinstance(value, str)}):
            remember(secret)
        where = f"catalog {self.name!r}"
        told = vended_properties(where, accepted(where, properties))
        check_answer(self.written, {**self.properties, **told})
        if location and not is_local(location):
            told[_IN_STORE] = location
        return super()._load_file_io(told, location)


def vended_properties(where: str, told: Mapping[str, Any]) -> dict[str, Any]:
    """A catalog's properties of a table; if it vends a key, nothing of the connection's own key is left.

    Raises:
        SinkError: it vends a part of a key.
    """
    vended = [name for name in _OF_A_KEY if name in told]
    if not vended:
        return {**told}
    for part in (_ID, _SECRET):
        if not any(name.endswith(part) for name in vended):
            raise SinkError(
                where,
                f"it vends {', '.join(vended)} of a table without s3.{part}: correct it in the catalog. If it has no "
                "keys to vend, give them in the connection",
            )
    return {**dict.fromkeys(_OF_A_KEY, ""), **told}


def uses_vended_credentials(catalog: Catalog, options: Mapping[str, str]) -> bool:
    """Whether some of the secrets for a table's files are not from the connection of its catalog."""
    own = secrets_of({name: value for name, value in catalog.properties.items() if isinstance(value, str)})
    return not set(secrets_of(options)) <= set(own)


def check_options(target: str, options: Mapping[str, str]) -> None:
    """Raise `SinkError` if options cannot reach a table's files."""
    if is_true(options.get("s3.remote-signing-enabled", "")) and not options.get("s3.access-key-id"):
        raise SinkError(
            target,
            "its catalog vends no keys for the table's files, and wants to sign every request to the store itself "
            "(s3.remote-signing-enabled), which the tasks that write cannot ask for: let it vend credentials, or give "
            "keys in the connection",
        )
