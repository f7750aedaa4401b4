"""REST catalogs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pyiceberg.catalog import URI
from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.catalog.rest.auth import AuthManager
from pyiceberg.table import CommitTableResponse, Table
from pyiceberg.table.update import TableRequirement, TableUpdate
from requests import Session

from airflow_provider_streams.lake.iceberg.catalogs.answered_properties import accepted, forget_code
from airflow_provider_streams.lake.iceberg.catalogs.catalog_answers import check_answer
from airflow_provider_streams.lake.iceberg.catalogs.rest_session import bounded
from airflow_provider_streams.lake.iceberg.catalogs.shared_snapshots import SharedSnapshots
from airflow_provider_streams.lake.iceberg.files.file_io import VendedCredentialsFileIO

_TOKENS_AT = "oauth2-server-uri"


class BoundedRestCatalog(SharedSnapshots, VendedCredentialsFileIO, RestCatalog):
    """Has a timeout, and leads no secret out of TLS. pyiceberg's own waits for ever, and has no setting for it.

    What the user wrote of the catalog decides on authentication alone: neither its answers nor a netrc file do.
    """

    def __init__(self, name: str, **properties: str) -> None:
        if "credential" in properties:  # pyiceberg's default, which it would warn about
            properties.setdefault(_TOKENS_AT, f"{properties[URI].rstrip('/')}/v1/oauth/tokens")
        self._written = properties
        super().__init__(name, **properties)

    @property
    def written(self) -> Mapping[str, Any]:
        """See `VendedCredentialsFileIO`."""
        return self._written

    def _fetch_config(self) -> None:
        """Take of the catalog's configuration what an answer may set.

        Raises:
            RedirectRefused: it leads secrets out of TLS, or to another host.
            SinkError: one of its properties cannot be used.
        """
        super()._fetch_config()
        answered = {name: value for name, value in self.properties.items() if value != self._written.get(name)}
        self.properties = {**self._written, **accepted(f"catalog {self.name!r}", answered)}
        check_answer(self._written, self.properties)
        self.uri = self.properties[URI]

    def commit_table(
        self, table: Table, requirements: tuple[TableRequirement, ...], updates: tuple[TableUpdate, ...]
    ) -> CommitTableResponse:
        """See `Catalog`. Another writer's code is not among the properties that the answer gives."""
        response: CommitTableResponse = super().commit_table(table, requirements, updates)
        forget_code(response.metadata.properties)
        return response

    def _create_session(self) -> Session:
        return bounded(super()._create_session())

    def _create_legacy_oauth2_auth_manager(self, session: Session) -> AuthManager:
        return super()._create_legacy_oauth2_auth_manager(bounded(session))  # it sends the client's secret at once
