"""What `airflow streams version` does: show what is installed here. Imports none of it."""

from __future__ import annotations

import platform
import sys
from argparse import Namespace
from collections.abc import Iterator
from importlib import metadata
from typing import Final, NamedTuple

from airflow_provider_streams.cli.action import command
from airflow_provider_streams.cli.output import answer_data, answer_rows
from airflow_provider_streams.spark.launch.java_search import JavaMissing, find_java
from airflow_provider_streams.version import __version__

_PACKAGES: Final = (
    "apache-airflow",
    "pyspark",
    "apache-airflow-providers-apache-spark",
    "pyarrow",
    "numpy",
    "sqlalchemy",
    "httpx",
    "google-crc32c",
    "protobuf",
    "grpcio",
    "pulsar-client",
    "pyiceberg",
    "deltalake",
)


class Installed(NamedTuple):
    """Something that is installed, or not."""

    name: str
    version: str | None
    origin: str = ""
    """Where it is, or why it is not there."""


@command
def version(args: Namespace) -> None:
    """Show versions, the package's own first."""
    found = list(_installed())
    if args.json:
        answer_data({one.name: {"version": one.version, "origin": one.origin or None} for one in found}, "json")
        return
    rows = [{"name": one.name, "version": one.version or "not installed", "origin": one.origin} for one in found]
    answer_rows(rows, "plain", "")


def _installed() -> Iterator[Installed]:
    yield Installed("airflow-provider-streams", __version__)
    yield Installed("python", platform.python_version(), sys.executable)
    yield _java()
    for name in _PACKAGES:
        yield Installed(name, _version_of(name))


def _java() -> Installed:
    try:
        java = find_java()
    except JavaMissing as error:
        return Installed("java", None, "; ".join(error.refused))
    return Installed("java", str(java.version), f"{java.origin}: {java.home}")


def _version_of(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None
