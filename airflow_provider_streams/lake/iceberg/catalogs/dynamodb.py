"""A catalog in Amazon's DynamoDB."""

from __future__ import annotations

from typing import Any

import boto3
from pyiceberg.catalog import BOTOCORE_SESSION
from pyiceberg.catalog.dynamodb import (
    DYNAMODB_ACCESS_KEY_ID,
    DYNAMODB_CLIENT,
    DYNAMODB_PROFILE_NAME,
    DYNAMODB_REGION,
    DYNAMODB_SECRET_ACCESS_KEY,
    DYNAMODB_SESSION_TOKEN,
    DynamoDbCatalog,
)
from pyiceberg.io import AWS_ACCESS_KEY_ID, AWS_REGION, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN
from pyiceberg.utils.properties import get_first_property_value

from airflow_provider_streams.lake.iceberg.catalogs.aws_address import check_address, without_profile
from airflow_provider_streams.lake.iceberg.files.file_io import VendedCredentialsFileIO


class CheckedDynamoDbCatalog(VendedCredentialsFileIO, DynamoDbCatalog):
    """Asks for its table, as soon as it is made, only where the connection's keys may travel."""

    def __init__(self, name: str, **properties: Any) -> None:
        """As pyiceberg's own. `InvalidRequest`: the environment would lead the connection's keys out of TLS."""
        client = _client_of(properties)  # the same that pyiceberg's own would make, and call
        check_address(name, client, properties)
        super().__init__(name, client=client, **properties)


def _client_of(properties: dict[str, Any]) -> Any:
    properties = without_profile(DYNAMODB_CLIENT, properties)
    session = boto3.Session(
        profile_name=properties.get(DYNAMODB_PROFILE_NAME),
        botocore_session=properties.get(BOTOCORE_SESSION),
        region_name=get_first_property_value(properties, DYNAMODB_REGION, AWS_REGION),
        aws_access_key_id=get_first_property_value(properties, DYNAMODB_ACCESS_KEY_ID, AWS_ACCESS_KEY_ID),
        aws_secret_access_key=get_first_property_value(properties, DYNAMODB_SECRET_ACCESS_KEY, AWS_SECRET_ACCESS_KEY),
        aws_session_token=get_first_property_value(properties, DYNAMODB_SESSION_TOKEN, AWS_SESSION_TOKEN),
    )
    return session.client(DYNAMODB_CLIENT)
