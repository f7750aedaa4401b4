"""Options that are true or false. Other values are refused: Python would take most of them for true."""

from __future__ import annotations

from airflow_provider_streams.errors import InvalidRequest


def check_booleans(owner: str, **values: object) -> None:
    """Check that an owner's options are booleans.

    Raises:
        InvalidRequest: one is something else, like the text `"no"`.
    """
    for name, value in values.items():
        if not isinstance(value, bool):
            raise InvalidRequest(f"{owner}: {name} is True or False, not {value!r:.100}")
