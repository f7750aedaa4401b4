"""How pyiceberg reads and writes the files of a table itself: as the tasks do, with the same options."""

from __future__ import annotations

from typing import Any

from pyarrow.fs import FileSystem
from pyiceberg.io.pyarrow import PyArrowFileIO

from airflow_provider_streams.lake.storage import BUCKET_SCHEMES, Storage, path_in


class StoreFileIO(PyArrowFileIO):
    """Buckets by our `Storage`.

    pyiceberg's own takes no certificate authority, asks Amazon where a bucket is, and knows no
    `abfss://container@account.dfs.core.windows.net/..`, which is how others name Azure's.
    """

    @staticmethod
    def parse_location(location: str, properties: dict[str, Any] = {}) -> tuple[str, str, str]:  # noqa: B006
        """Scheme, host, and the path as its file system calls it."""
        scheme, netloc, path = PyArrowFileIO.parse_location(location, properties)
        if scheme in BUCKET_SCHEMES:
            path = path_in(scheme, netloc, path.removeprefix(netloc))
        return scheme, netloc, path

    def _initialize_fs(self, scheme: str, netloc: str | None = None) -> FileSystem:
        if scheme not in BUCKET_SCHEMES:
            return super()._initialize_fs(scheme, netloc)
        options = {name: str(value) for name, value in self.properties.items() if isinstance(value, str | int)}
        return Storage(f"{scheme}://{netloc or ''}", options).open()[0]
