"""One scan of one or many plans by Spark's tasks: their rows and their receipts, in the same pass."""

from __future__ import annotations

import json
import logging
from collections import defaultdict
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from airflow_provider_streams.model.receipt import SplitReceipt, worst
from airflow_provider_streams.spark import veil
from airflow_provider_streams.spark.blocks import RECEIPT
from airflow_provider_streams.spark.observing import observed
from airflow_provider_streams.spark.spec import JobSpec
from airflow_provider_streams.spark.windows_source import WindowsDataSource, blocks_of, source_options

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Observation, SparkSession

_log = logging.getLogger(__name__)


class Scan:
    """Reads nothing before the first action on `df`.

    Args:
        specs: the windows.
        spark: the session.
    """

    def __init__(self, specs: tuple[JobSpec, ...], spark: SparkSession) -> None:
        from pyspark.sql import Observation  # noqa: PLC0415 - only where Spark runs
        from pyspark.sql import functions as F  # noqa: N812, PLC0415

        veil.hide(spark)
        spark.dataSource.register(WindowsDataSource)
        self._source = spark.read.format(WindowsDataSource.name()).options(**source_options(specs)).load()
        self._splits = sum(len(spec.plan.splits) for spec in specs)
        self._observation = Observation("streams receipts")
        seen = self._source.observe(self._observation, F.collect_list(RECEIPT).alias("receipts"))
        self.df: DataFrame = blocks_of(specs[0]).rows_of(seen)
        """All rows, each with the number of its window (`NUMBER_COLUMN`)."""

    @property
    def is_over(self) -> bool:
        """Whether an action has passed by."""
        return _is_over(self._observation)

    def receipts(self) -> dict[int, list[SplitReceipt]]:
        """What the splits of each window saw, after the first action on `df` has ended.

        When Spark skipped splits (a filter that is always false, a limit), nothing came from them: the source is then
        read once more, for the receipts alone.
        """
        found = _by_window(observed(self._observation).get("receipts") or ())
        count = sum(map(len, found.values()))
        if count < self._splits:
            _log.warning("Spark skipped %d of %d splits: reading for the receipts", self._splits - count, self._splits)
            rows = self._source.filter(f"{RECEIPT} is not null").select(RECEIPT).collect()
            found = _by_window(row[0] for row in rows)
        return found


def _by_window(texts: Iterable[Any]) -> dict[int, list[SplitReceipt]]:
    found: dict[int, list[SplitReceipt]] = defaultdict(list)
    for text in texts:
        told = json.loads(text)
        found[told["window"]].append(SplitReceipt.from_json(told["receipt"]))
    return defaultdict(list, {number: worst(receipts) for number, receipts in found.items()})


def _is_over(observation: Observation) -> bool:
    """Asking `get` would wait for one. Connect's client fills a dictionary."""
    java = getattr(observation, "_jo", None)
    return bool(java.future().isCompleted() if java is not None else getattr(observation, "_result", None))
