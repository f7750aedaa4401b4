"""What a connection says twice, or only half: of two values, or two credentials, one would be left out."""

from __future__ import annotations

from collections.abc import Sequence

from airflow_provider_streams.errors import InvalidRequest


def contradiction(conn_id: object, said: str, advice: str) -> InvalidRequest:
    """The error for places that differ.

    Args:
        conn_id: the connection.
        said: the places, and how they differ; no values.
        advice: what to do.
    """
    return InvalidRequest(f"connection {conn_id!r} contradicts itself: {said}. {advice}")


def half_given(conn_id: object, given: str, lacking: str, advice: str = "give both, or none") -> InvalidRequest:
    """The error for one half of a pair, by the names of both halves."""
    return InvalidRequest(f"connection {conn_id!r}: {given} is given without {lacking}: {advice}")


def check_one_credential(conn_id: object, given: Sequence[str], service: str) -> None:
    """Check that there is one credential at most.

    Args:
        conn_id: the connection.
        given: the places of credentials.
        service: what they are for, which uses only one: `catalog`.

    Raises:
        InvalidRequest: there are several. It shows only their places.
    """
    if len(given) > 1:
        said = f"{' and '.join(given)} are credentials of the same {service}, which uses only one"
        raise contradiction(conn_id, said, "Leave out the others")
