"""Where Amazon's client calls: the environment may not lead keys that the user wrote out of TLS."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from airflow_provider_streams.errors import InvalidRequest


def check_address(name: str, client: Any, service: str, properties: Mapping[str, Any]) -> None:
    """Check a client before its first request.

    Args:
        name: the catalog's, for errors.
        client: of botocore.
        service: `glue` or `dynamodb`.
        properties: the catalog's, as the user wrote them.

    Raises:
        InvalidRequest: the environment or Amazon's configuration file has an address without TLS for keys of the user.
    """
    has_keys = any(properties.get(f"{family}.access-key-id") for family in (service, "client"))
    written = properties.get(f"{service}.endpoint")
    if has_keys and not written and not str(client.meta.endpoint_url).startswith("https://"):
        raise InvalidRequest(
            f"catalog {name!r}: the environment (AWS_ENDPOINT_URL, AWS_ENDPOINT_URL_{service.upper()}) or Amazon's "
            f"configuration file would lead the keys of the connection to an address without TLS: "
            f"{_ELSEWHERE.get(service, '')}remove that setting from driver and executors"
        )


_ELSEWHERE = {"glue": "write the address into the connection's extra glue.endpoint, or "}
"""How a connection may say the address itself."""
