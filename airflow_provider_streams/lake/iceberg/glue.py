"""A catalog in Amazon's Glue."""

from __future__ import annotations

from typing import Any

from pyiceberg.catalog.glue import GLUE_MAX_RETRIES, GlueCatalog

from airflow_provider_streams.lake.iceberg.lent import OwnFileIO

_TRIES = 3
"""Of each call, by Amazon's client: who calls tries again, too."""


class BoundedGlueCatalog(OwnFileIO, GlueCatalog):
    """Asks a few times where nobody answers: pyiceberg's own asks ten times, and takes no other number as text."""

    def __init__(self, name: str, **properties: Any) -> None:
        super().__init__(name, **{**properties, GLUE_MAX_RETRIES: int(properties.get(GLUE_MAX_RETRIES, _TRIES))})
