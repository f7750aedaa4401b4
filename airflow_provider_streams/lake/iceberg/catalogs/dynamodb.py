"""A catalog in Amazon's DynamoDB."""

from __future__ import annotations

from pyiceberg.catalog.dynamodb import DynamoDbCatalog

from airflow_provider_streams.lake.iceberg.catalogs.aws_address import check_address


class CheckedDynamoDbCatalog(DynamoDbCatalog):
    """Asks for its table, as soon as it is made, only where the connection's keys may travel."""

    def _ensure_catalog_table_exists_or_create(self) -> None:
        check_address(self.name, self.dynamodb, "dynamodb", self.properties)
        super()._ensure_catalog_table_exists_or_create()
