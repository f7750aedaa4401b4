"""Commits of Spark's that fail, for tests of tables."""

from __future__ import annotations

from typing import Any

import pytest

from airflow_provider_streams.spark.catalog import writer as writers


def failing_overwrites(monkeypatch: pytest.MonkeyPatch, *faults: str) -> list[str]:
    """The next overwrites end with an error: before anything is written, or when all is."""
    from pyspark.sql.readwriter import DataFrameWriterV2

    left, real = list(faults), DataFrameWriterV2.overwrite

    def overwrite(self: Any, condition: Any) -> None:
        fault = left.pop(0) if left else ""
        if fault == "before":
            raise RuntimeError("java.net.ConnectException: Connection refused")
        real(self, condition)
        if fault == "answer lost":
            raise RuntimeError("org.apache.iceberg.exceptions.CommitStateUnknownException: unknown")

    monkeypatch.setattr(DataFrameWriterV2, "overwrite", overwrite)
    monkeypatch.setattr(writers, "_PAUSES_SECONDS", (0.0, 0.0, 0.0))
    return left
