"""How splits are read."""

from __future__ import annotations

from dataclasses import dataclass, field

from airflow_provider_streams.model.plan.plan import OnLoss
from airflow_provider_streams.model.schema.decode_errors import DecodeErrorPolicy


@dataclass(frozen=True, slots=True)
class SplitReadOptions:
    """How splits are read, the same for all of a window."""

    columns: tuple[str, ...] | None = None
    """None: the default ones."""
    on_loss: OnLoss = "fail"
    undecodable: DecodeErrorPolicy = field(default_factory=DecodeErrorPolicy)
    quarantine: str | None = None
    """The folder for events that are kept aside; None: they are only counted."""
