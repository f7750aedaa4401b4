"""Exact, retryable windows of Apache Pulsar and Pravega for Airflow DAGs."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from airflow_provider_streams.model.basis import Cuts
    from airflow_provider_streams.model.sink import ParquetSink
    from airflow_provider_streams.model.window import Window
    from airflow_provider_streams.systems.pravega.source import PravegaSource
    from airflow_provider_streams.systems.pulsar.source import PulsarSource

__version__ = "0.1.0"
__all__ = ["Cuts", "ParquetSink", "PravegaSource", "PulsarSource", "Window", "__version__"]

_PUBLIC = {
    "Cuts": "model.basis",
    "ParquetSink": "model.sink",
    "PravegaSource": "systems.pravega.source",
    "PulsarSource": "systems.pulsar.source",
    "Window": "model.window",
}


def __getattr__(name: str) -> object:
    """Public names are imported when first used: Airflow imports this package on every command."""
    if name not in _PUBLIC:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_PUBLIC[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
