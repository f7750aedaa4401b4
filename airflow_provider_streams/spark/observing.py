"""What Spark observed while an action ran."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import Observation


def observed(observation: Observation) -> dict[str, Any]:
    """What was observed by an action that succeeded; nothing, if the optimizer removed the observation."""
    try:
        found: dict[str, Any] = observation.get
    except Exception:  # noqa: BLE001 - Spark 4.2 fails an assertion of its own, as a Java error, instead of answering
        return {}
    return found
