"""Scaling events as a hint: the times at which a stream's segments changed, from its REST API.

They are no index from time to place. Each time was sent by the client that asked for the scaling, and only the segments
that an event made start there.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Self

from airflow_provider_streams.errors import InvalidRequest, ProtocolError
from airflow_provider_streams.systems.pravega.client.endpoint import Endpoint
from airflow_provider_streams.systems.pravega.client.rest_api import get
from airflow_provider_streams.systems.pravega.metadata.segment_names import segment_id

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class ScalingEvent:
    """One change of a stream's segments."""

    moment: datetime
    segments: tuple[int, ...]
    """The open ones after it."""
    splits: int
    merges: int

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """From an element of the answer, in the form that servers send or the one that their documentation shows."""
        listed = data.get("segments") or data.get("segmentList") or ()
        return cls(
            _EPOCH + timedelta(milliseconds=data["timestamp"]),
            tuple(sorted(segment_id(one["number"], one.get("epoch", 0)) for one in listed)),
            data.get("splits", 0),
            data.get("merges", 0),
        )


def scaling_events(endpoint: Endpoint, stream: str) -> list[ScalingEvent]:
    """The scaling events of a stream; blocks.

    Raises:
        InvalidRequest: the connection names no REST API.
        SourceNotFound, AuthenticationFailed, NotAuthorized, SystemUnavailable: as the server says.
    """
    if not endpoint.rest_url:
        raise InvalidRequest("the REST API knows the scaling events: add the option rest_url to the connection")
    scope, _, name = stream.partition("/")
    now = (datetime.now(UTC) - _EPOCH) // timedelta(milliseconds=1)
    path, action = f"scopes/{scope}/streams/{name}/scaling-events", f"see the scaling events of {stream}"
    return events_of_json(endpoint.rest_url, get(endpoint, action, path, {"from": 0, "to": now}, stream))


def events_of_json(where: str, content: bytes) -> list[ScalingEvent]:
    """Scaling events from an answer's JSON; `ProtocolError` for other bytes."""
    try:
        data = json.loads(content)
        listed: Sequence[Mapping[str, Any]] = data.get("scalingEvents", ()) if isinstance(data, dict) else data
        return [ScalingEvent.from_json(one) for one in listed]
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError) as error:
        raise ProtocolError(f"{where}: an answer that is no list of scaling events: {type(error).__name__}") from error
