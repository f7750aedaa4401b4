"""Where Amazon's client calls: the environment may not lead keys that the user wrote out of TLS."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from airflow_provider_streams.errors import InvalidRequest


def check_address(name: str, client: Any, properties: Mapping[str, Any], advice: str = "") -> None:
    """Check a client, whose address the connection does not say, before its first request.

    Args:
        name: the catalog's, for errors.
        client: of botocore.
        properties: the catalog's, as the user wrote them.
        advice: what helps besides another environment, for errors: `write .., or `.

    Raises:
        InvalidRequest: the environment or Amazon's configuration file has an address without TLS for keys of the user.
    """
    service = client.meta.service_model.service_name
    has_keys = any(properties.get(f"{family}.access-key-id") for family in (service, "client"))
    if has_keys and not str(client.meta.endpoint_url).startswith("https://"):
        raise InvalidRequest(
            f"catalog {name!r}: the environment (AWS_ENDPOINT_URL, AWS_ENDPOINT_URL_{service.upper()}) or Amazon's "
            f"configuration file would lead the keys of the connection to an address without TLS: {advice}remove that "
            "setting from driver and executors"
        )
