"""Arguments that are written NAME=VALUE, and may be repeated."""

from __future__ import annotations

from collections.abc import Sequence

from airflow_provider_streams.errors import InvalidRequest


def pairs_of(flag: str, given: Sequence[str]) -> dict[str, str]:
    """The values by name; of two for one name, the later.

    Raises:
        InvalidRequest: not written NAME=VALUE.
    """
    pairs = {}
    for one in given:
        name, is_pair, value = one.partition("=")
        if not is_pair or not name:
            raise InvalidRequest(f"{flag} takes NAME=VALUE")
        pairs[name] = value
    return pairs
