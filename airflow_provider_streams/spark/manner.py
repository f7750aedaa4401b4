"""How splits are read."""

from __future__ import annotations

from dataclasses import dataclass, field

from airflow_provider_streams.model.plan import OnLoss
from airflow_provider_streams.model.undecodable import Undecodable


@dataclass(frozen=True, slots=True)
class Manner:
    """How splits are read, the same for all of a window."""

    columns: tuple[str, ...] | None = None
    """None: the default ones."""
    on_loss: OnLoss = "fail"
    undecodable: Undecodable = field(default_factory=Undecodable)
    quarantine: str | None = None
    """The folder for events that are kept aside; None: they are only counted."""
