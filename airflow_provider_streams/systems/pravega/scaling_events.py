"""Scaling events as a hint: when a stream's segments changed, as its REST API remembers it.

They are no index from time to place: the times are those that whoever asked for the scaling sent, and only segments
that an event made start there.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Self

from airflow_provider_streams.errors import (
    AuthenticationFailed,
    InvalidRequest,
    NotAuthorized,
    ProtocolError,
    SourceNotFound,
    SystemUnavailable,
)
from airflow_provider_streams.systems.pravega.credentials import Credentials
from airflow_provider_streams.systems.pravega.endpoint import Endpoint
from airflow_provider_streams.systems.pravega.names import segment_id
from airflow_provider_streams.systems.tls import tls_refusal

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_OK, _UNAUTHORIZED, _FORBIDDEN, _MISSING = 200, 401, 403, 404


@dataclass(frozen=True, slots=True)
class ScalingEvent:
    """One change of a stream's segments."""

    moment: datetime
    segments: tuple[int, ...]
    """Those that are open after it."""
    splits: int
    merges: int

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """From an element of the answer, in the form servers send or the one their documentation shows."""
        listed = data.get("segments") or data.get("segmentList") or ()
        return cls(
            _EPOCH + timedelta(milliseconds=data["timestamp"]),
            tuple(sorted(segment_id(one["number"], one.get("epoch", 0)) for one in listed)),
            data.get("splits", 0),
            data.get("merges", 0),
        )


def scaling_events(endpoint: Endpoint, stream: str, start: datetime, end: datetime) -> list[ScalingEvent]:
    """The scaling events of a span of time, after the last one before it; blocks.

    Raises:
        InvalidRequest: the connection names no REST API.
        SourceNotFound, AuthenticationFailed, NotAuthorized, SystemUnavailable: as the server says.
    """
    import httpx  # noqa: PLC0415 - only where the REST API is asked

    if not endpoint.rest_url:
        raise InvalidRequest("scaling events are told by the REST API: add the option rest_url to the connection")
    scope, _, name = stream.partition("/")
    base = endpoint.rest_url.rstrip("/").removesuffix("/v1")
    url = f"{base}/v1/scopes/{scope}/streams/{name}/scaling-events"
    header = Credentials(endpoint).header()
    verify = endpoint.ssl_context() if url.startswith("https://") else True
    query = {"from": _ms(start), "to": _ms(end)}
    try:
        with httpx.Client(timeout=endpoint.request_timeout_seconds, verify=verify) as http:
            answer = http.get(url, params=query, headers={"Authorization": header} if header else {})
    except httpx.TransportError as error:
        raise tls_refusal(base, error) or SystemUnavailable(base, type(error).__name__) from error
    _check(answer.status_code, base, stream)
    return events_of_json(base, answer.content)


def events_of_json(where: str, content: bytes) -> list[ScalingEvent]:
    """Scaling events from an answer's JSON.

    Raises:
        ProtocolError: it is none.
    """
    try:
        data = json.loads(content)
        listed: Sequence[Mapping[str, Any]] = data.get("scalingEvents", ()) if isinstance(data, dict) else data
        return [ScalingEvent.from_json(one) for one in listed]
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError) as error:
        raise ProtocolError(f"{where}: an answer that is no list of scaling events: {type(error).__name__}") from error


def _check(status: int, base: str, stream: str) -> None:
    if status == _OK:
        return
    if status == _UNAUTHORIZED:
        raise AuthenticationFailed(base)
    if status == _FORBIDDEN:
        raise NotAuthorized(base, f"see the scaling events of {stream}")
    if status == _MISSING:
        raise SourceNotFound(stream, base)
    raise SystemUnavailable(base, f"HTTP {status}")


def _ms(moment: datetime) -> int:
    return max(0, (moment - _EPOCH) // timedelta(milliseconds=1))
