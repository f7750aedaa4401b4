"""Exact, retryable windows of Apache Pulsar and Pravega for Airflow DAGs."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from airflow_provider_streams.version import __version__

if TYPE_CHECKING:
    from airflow_provider_streams.lake.writer import TableWriter
    from airflow_provider_streams.model.basis import Chained, Cuts, EventTime, PublishTime, RecordedCuts
    from airflow_provider_streams.model.own_sink import OwnSink
    from airflow_provider_streams.model.payload import Avro, Bytes, Json, Protobuf, Registry, Utf8
    from airflow_provider_streams.model.sink import DeltaSink, IcebergSink, ParquetSink
    from airflow_provider_streams.model.table_sink import TableSink
    from airflow_provider_streams.model.window import Window
    from airflow_provider_streams.operators.announce import AnnounceWindowsOperator
    from airflow_provider_streams.operators.backfill import BackfillWindowsOperator
    from airflow_provider_streams.operators.cuts import RecordCutsOperator
    from airflow_provider_streams.operators.holds import HoldRetentionOperator, MoveHoldOperator, ReleaseHoldOperator
    from airflow_provider_streams.operators.read import ReadWindowOperator
    from airflow_provider_streams.operators.retention import CheckRetentionOperator
    from airflow_provider_streams.operators.schemas import CheckSchemaCompatibilityOperator
    from airflow_provider_streams.operators.upkeep import CompactTableOperator, ExpireTableOperator
    from airflow_provider_streams.retry import stream_retry_policy
    from airflow_provider_streams.sensors.cuts import CutAvailableSensor
    from airflow_provider_streams.sensors.retention import RetentionGuardSensor
    from airflow_provider_streams.sensors.schemas import SchemaAvailableSensor
    from airflow_provider_streams.sensors.window import WindowReadySensor
    from airflow_provider_streams.spark.sinks import FrameWriter
    from airflow_provider_streams.systems.pravega.source import PravegaSource
    from airflow_provider_streams.systems.pulsar.source import PulsarSource
    from airflow_provider_streams.triggers.cuts import RecordCutsTrigger
    from airflow_provider_streams.triggers.new_windows import NewWindowsTrigger

__all__ = [
    "AnnounceWindowsOperator",
    "Avro",
    "BackfillWindowsOperator",
    "Bytes",
    "Chained",
    "CheckRetentionOperator",
    "CheckSchemaCompatibilityOperator",
    "CompactTableOperator",
    "CutAvailableSensor",
    "Cuts",
    "DeltaSink",
    "EventTime",
    "ExpireTableOperator",
    "FrameWriter",
    "HoldRetentionOperator",
    "IcebergSink",
    "Json",
    "MoveHoldOperator",
    "NewWindowsTrigger",
    "OwnSink",
    "ParquetSink",
    "PravegaSource",
    "Protobuf",
    "PublishTime",
    "PulsarSource",
    "ReadWindowOperator",
    "RecordCutsOperator",
    "RecordCutsTrigger",
    "RecordedCuts",
    "Registry",
    "ReleaseHoldOperator",
    "RetentionGuardSensor",
    "SchemaAvailableSensor",
    "TableSink",
    "TableWriter",
    "Utf8",
    "Window",
    "WindowReadySensor",
    "__version__",
    "stream_retry_policy",
]

_PUBLIC = {
    "model.basis": ("Chained", "Cuts", "EventTime", "PublishTime", "RecordedCuts"),
    "lake.writer": ("TableWriter",),
    "model.own_sink": ("OwnSink",),
    "model.payload": ("Avro", "Bytes", "Json", "Protobuf", "Registry", "Utf8"),
    "model.sink": ("DeltaSink", "IcebergSink", "ParquetSink"),
    "model.table_sink": ("TableSink",),
    "model.window": ("Window",),
    "operators.announce": ("AnnounceWindowsOperator",),
    "operators.backfill": ("BackfillWindowsOperator",),
    "operators.cuts": ("RecordCutsOperator",),
    "operators.holds": ("HoldRetentionOperator", "MoveHoldOperator", "ReleaseHoldOperator"),
    "operators.read": ("ReadWindowOperator",),
    "operators.retention": ("CheckRetentionOperator",),
    "operators.schemas": ("CheckSchemaCompatibilityOperator",),
    "operators.upkeep": ("CompactTableOperator", "ExpireTableOperator"),
    "systems.pravega.source": ("PravegaSource",),
    "systems.pulsar.source": ("PulsarSource",),
    "sensors.cuts": ("CutAvailableSensor",),
    "spark.sinks": ("FrameWriter",),
    "retry": ("stream_retry_policy",),
    "sensors.retention": ("RetentionGuardSensor",),
    "sensors.schemas": ("SchemaAvailableSensor",),
    "sensors.window": ("WindowReadySensor",),
    "triggers.cuts": ("RecordCutsTrigger",),
    "triggers.new_windows": ("NewWindowsTrigger",),
}
_MODULES = {name: module for module, names in _PUBLIC.items() for name in names}


def __getattr__(name: str) -> object:
    """Public names are imported when first used: Airflow imports this package on every command."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_MODULES[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
