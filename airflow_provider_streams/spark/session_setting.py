"""Sets a setting of a user's session for a while."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING

from airflow_provider_streams.model.schema.decoding import Decoding
from airflow_provider_streams.model.schema.types import Simple, leaves

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from pyspark.sql import SparkSession

_TIME_TYPE = "spark.sql.timeType.enabled"


@contextmanager
def setting(spark: SparkSession, name: str, value: str) -> Iterator[None]:
    """Give a setting this value meanwhile."""
    before = spark.conf.get(name, None)
    spark.conf.set(name, value)
    try:
        yield
    finally:
        if before is None:
            spark.conf.unset(name)
        else:
            spark.conf.set(name, before)


def with_times_of_day(spark: SparkSession, decodings: Iterable[Decoding | None]) -> AbstractContextManager[None]:
    """Enable Spark 4.2's type for times of day meanwhile, if payloads have some."""
    kinds = (kind for one in decodings if one for kind in (one.value, one.key) if kind)
    if any(isinstance(leaf, Simple) and leaf.word == "time" for kind in kinds for leaf in leaves(kind)):
        return setting(spark, _TIME_TYPE, "true")
    return nullcontext()
