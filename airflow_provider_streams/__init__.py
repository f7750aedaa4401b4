"""Exact, retryable windows of Apache Pulsar and Pravega for Airflow DAGs."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from airflow_provider_streams.version import __version__

if TYPE_CHECKING:
    from airflow_provider_streams.lake.writer import DataFrameSinkWriter, TableWriter
    from airflow_provider_streams.model.changes.auto_cdc import AutoCdc
    from airflow_provider_streams.model.schema.change_payload import Canal, Debezium, Maxwell
    from airflow_provider_streams.model.schema.payload import Auto, Avro, Bytes, Json, Protobuf, Registry, Utf8
    from airflow_provider_streams.model.sinks.custom_sink import CustomSink
    from airflow_provider_streams.model.sinks.sink import DeltaSink, IcebergSink, ParquetSink
    from airflow_provider_streams.model.sinks.table_sink import TableSink
    from airflow_provider_streams.model.window.basis import Chained, Cuts, EventTime, PublishTime, RecordedCuts
    from airflow_provider_streams.model.window.window import Window
    from airflow_provider_streams.operators.announcement import AnnounceWindowsOperator
    from airflow_provider_streams.operators.backfill import BackfillWindowsOperator
    from airflow_provider_streams.operators.cuts import RecordCutsOperator
    from airflow_provider_streams.operators.doctor import StreamsDoctorOperator
    from airflow_provider_streams.operators.holds import HoldRetentionOperator, MoveHoldOperator, ReleaseHoldOperator
    from airflow_provider_streams.operators.maintenance import CompactTableOperator, ExpireTableOperator
    from airflow_provider_streams.operators.read import ReadWindowOperator
    from airflow_provider_streams.operators.retention import CheckRetentionOperator
    from airflow_provider_streams.operators.schemas import CheckSchemaCompatibilityOperator
    from airflow_provider_streams.retry import stream_retry_policy
    from airflow_provider_streams.sensors.cuts import CutAvailableSensor
    from airflow_provider_streams.sensors.freshness import FreshTableSensor
    from airflow_provider_streams.sensors.retention import RetentionRiskSensor
    from airflow_provider_streams.sensors.schemas import SchemaAvailableSensor
    from airflow_provider_streams.sensors.window import WindowReadySensor
    from airflow_provider_streams.systems.pravega.source import PravegaSource
    from airflow_provider_streams.systems.pulsar.source import PulsarSource
    from airflow_provider_streams.triggers.cuts import RecordCutsTrigger
    from airflow_provider_streams.triggers.new_windows import NewWindowsTrigger

__all__ = [
    "AnnounceWindowsOperator",
    "Auto",
    "AutoCdc",
    "Avro",
    "BackfillWindowsOperator",
    "Bytes",
    "Canal",
    "Chained",
    "CheckRetentionOperator",
    "CheckSchemaCompatibilityOperator",
    "CompactTableOperator",
    "CustomSink",
    "CutAvailableSensor",
    "Cuts",
    "DataFrameSinkWriter",
    "Debezium",
    "DeltaSink",
    "EventTime",
    "ExpireTableOperator",
    "FreshTableSensor",
    "HoldRetentionOperator",
    "IcebergSink",
    "Json",
    "Maxwell",
    "MoveHoldOperator",
    "NewWindowsTrigger",
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
    "RetentionRiskSensor",
    "SchemaAvailableSensor",
    "StreamsDoctorOperator",
    "TableSink",
    "TableWriter",
    "Utf8",
    "Window",
    "WindowReadySensor",
    "__version__",
    "stream_retry_policy",
]

_PUBLIC = {
    "model.window.basis": ("Chained", "Cuts", "EventTime", "PublishTime", "RecordedCuts"),
    "lake.writer": ("DataFrameSinkWriter", "TableWriter"),
    "model.sinks.custom_sink": ("CustomSink",),
    "model.changes.auto_cdc": ("AutoCdc",),
    "model.schema.change_payload": ("Canal", "Debezium", "Maxwell"),
    "model.schema.payload": ("Auto", "Avro", "Bytes", "Json", "Protobuf", "Registry", "Utf8"),
    "model.sinks.sink": ("DeltaSink", "IcebergSink", "ParquetSink"),
    "model.sinks.table_sink": ("TableSink",),
    "model.window.window": ("Window",),
    "operators.asset_events": ("AnnounceWindowsOperator",),
    "operators.backfill": ("BackfillWindowsOperator",),
    "operators.cuts": ("RecordCutsOperator",),
    "operators.doctor": ("StreamsDoctorOperator",),
    "operators.holds": ("HoldRetentionOperator", "MoveHoldOperator", "ReleaseHoldOperator"),
    "operators.read": ("ReadWindowOperator",),
    "operators.retention": ("CheckRetentionOperator",),
    "operators.schemas": ("CheckSchemaCompatibilityOperator",),
    "operators.maintenance": ("CompactTableOperator", "ExpireTableOperator"),
    "systems.pravega.source": ("PravegaSource",),
    "systems.pulsar.source": ("PulsarSource",),
    "sensors.cuts": ("CutAvailableSensor",),
    "sensors.freshness": ("FreshTableSensor",),
    "retry": ("stream_retry_policy",),
    "sensors.retention": ("RetentionRiskSensor",),
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
