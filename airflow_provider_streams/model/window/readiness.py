"""The answer to whether something is ready: yes, or not yet and why."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any


@dataclass(frozen=True, slots=True)
class Readiness:
    """What one check of a window, a condition or a schedule found."""

    ready: bool
    because: str = ""
    """What is still missing, while it is not ready."""
    facts: dict[str, Any] = field(default_factory=dict)
    """Plain JSON values for the waiting task; no secret."""
    not_before: datetime | None = None
    """Asking again earlier cannot help."""
