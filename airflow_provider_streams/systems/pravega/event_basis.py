"""What the basis `event` needs of a Pravega source; free of its clients, for whoever checks a DAG."""

from __future__ import annotations

from airflow_provider_streams.errors import InvalidRequest
from airflow_provider_streams.model.basis import Basis, EventTime


def check(basis: Basis, source: object = "a Pravega source") -> None:
    """An event's time is a field of its own, or a transform's business.

    Raises:
        InvalidRequest: nobody says which.
    """
    if isinstance(basis, EventTime) and basis.event_time is None and basis.rows == "exact":
        raise InvalidRequest(
            f"{source}: Pravega keeps no time with an event, so a window by event time needs the field that is its "
            "time: EventTime(event_time='created_at'), and a source with value=.. . EventTime(rows='superset') reads "
            "all between the watermarks around the window, for a transform to filter: adjacent windows then share rows"
        )
