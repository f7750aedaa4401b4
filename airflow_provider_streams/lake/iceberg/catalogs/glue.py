"""A catalog in Amazon's Glue."""

from __future__ import annotations

from typing import Any

from pyiceberg.catalog import BOTOCORE_SESSION
from pyiceberg.catalog.glue import GLUE_CATALOG_ENDPOINT, GLUE_MAX_RETRIES, GlueCatalog

from airflow_provider_streams.lake.iceberg.catalogs.aws_address import check_address, without_profile
from airflow_provider_streams.lake.iceberg.catalogs.shared_snapshots import SharedSnapshots
from airflow_provider_streams.lake.iceberg.files.file_io import VendedCredentialsFileIO

_TRIES = 3
"""Of each call, by Amazon's client; our callers also try again."""


class BoundedGlueCatalog(SharedSnapshots, VendedCredentialsFileIO, GlueCatalog):
    """Tries a few times if Glue does not answer: pyiceberg's own tries ten times, and takes no number as text."""

    def __init__(self, name: str, **properties: Any) -> None:
        """As pyiceberg's own. `InvalidRequest`: the environment would lead the connection's keys out of TLS."""
        told = {**properties, GLUE_MAX_RETRIES: int(properties.get(GLUE_MAX_RETRIES, _TRIES))}
        super().__init__(name, **without_profile("glue", told))
        self.properties.pop(BOTOCORE_SESSION, None)  # it is for the client alone
        if not properties.get(GLUE_CATALOG_ENDPOINT):
            check_address(name, self.glue, properties, f"write the address into the extra {GLUE_CATALOG_ENDPOINT}, or ")
