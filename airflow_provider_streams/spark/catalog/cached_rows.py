"""Rows that are read once, and kept until they are proven and written."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from pyspark import StorageLevel

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def kept(df: DataFrame) -> DataFrame:
    """The rows of one pass over a DataFrame, on the executors' disks. If a disk is lost, reading them fails."""
    if ".connect." not in type(df).__module__:
        return df.localCheckpoint(eager=True, storageLevel=StorageLevel.DISK_ONLY)
    # Connect does not deliver what a checkpoint observed, so another action runs first
    cached = df.persist(StorageLevel.DISK_ONLY)
    try:
        cached.write.format("noop").mode("overwrite").save()
        return cached.localCheckpoint(eager=True, storageLevel=StorageLevel.DISK_ONLY)
    finally:
        cached.unpersist()


def released(df: DataFrame) -> None:
    """Free the disks of kept rows; Connect's server does so itself when no client refers to them."""
    with suppress(Exception):
        df._jdf.queryExecution().logical().rdd().unpersist(False)  # noqa: SLF001 - PySpark offers no other way
