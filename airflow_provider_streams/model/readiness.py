"""The answer to whether something has come about: yes, or not yet, because."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any


@dataclass(frozen=True, slots=True)
class Readiness:
    """What one look at a window, a condition or a schedule told."""

    ready: bool
    because: str = ""
    """What is still missing, while it is not ready."""
    facts: dict[str, Any] = field(default_factory=dict)
    """Plain JSON values for whoever waits; no secret."""
    not_before: datetime | None = None
    """Asking again earlier cannot help."""
