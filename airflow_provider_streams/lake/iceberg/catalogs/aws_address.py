"""What the environment may change of Amazon's client: it leads no keys that the user wrote out of TLS."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from botocore.session import Session
from pyiceberg.catalog import BOTOCORE_SESSION

from airflow_provider_streams.errors import InvalidRequest

_NOWHERE = (None, None, None, None)
"""Neither a setting in a file, nor a variable, nor a default, nor a conversion."""


def without_profile(service: str, properties: Mapping[str, Any]) -> dict[str, Any]:
    """The properties with a session that ignores `AWS_PROFILE`, if they have keys: those count alone.

    The variable may name a profile that does not exist here, or one with an address.
    """
    if not _has_keys(service, properties):
        return {**properties}
    return {BOTOCORE_SESSION: Session(session_vars={"profile": _NOWHERE}), **properties}


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
    if _has_keys(service, properties) and not str(client.meta.endpoint_url).startswith("https://"):
        raise InvalidRequest(
            f"catalog {name!r}: the environment (AWS_ENDPOINT_URL, AWS_ENDPOINT_URL_{service.upper()}) or Amazon's "
            f"configuration file would lead the keys of the connection to an address without TLS: {advice}remove that "
            "setting from driver and executors"
        )


def _has_keys(service: str, properties: Mapping[str, Any]) -> bool:
    return any(properties.get(f"{family}.access-key-id") for family in (service, "client"))
