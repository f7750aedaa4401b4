"""One scan of one or many plans by Spark's tasks: their rows and their receipts, in the same pass."""

from __future__ import annotations

import json
import logging
from collections import defaultdict
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from airflow_provider_streams.errors.plurals import counted
from airflow_provider_streams.model.plan.receipt import SplitReceipt, worst
from airflow_provider_streams.spark.datasource import option_redaction
from airflow_provider_streams.spark.datasource.row_blocks import RECEIPT
from airflow_provider_streams.spark.datasource.windows_source import WindowsDataSource, blocks_of, source_options
from airflow_provider_streams.spark.job.job_spec import WindowSpec

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Observation, SparkSession

_log = logging.getLogger(__name__)


class Scan:
    """Reads nothing before the first action on `df`."""

    def __init__(self, specs: tuple[WindowSpec, ...], spark: SparkSession) -> None:
        from pyspark.sql import Observation  # noqa: PLC0415 - only where Spark runs
        from pyspark.sql import functions as F  # noqa: N812, PLC0415

        option_redaction.hide(spark)
        spark.dataSource.register(WindowsDataSource)
        self._source = spark.read.format(WindowsDataSource.name()).options(**source_options(specs)).load()
        self._splits = sum(len(spec.plan.splits) for spec in specs)
        self._observation = Observation("streams receipts")
        seen = self._source.observe(self._observation, F.collect_list(RECEIPT).alias("receipts"))
        self.df: DataFrame = blocks_of(specs[0]).rows_of(seen)
        """All rows, each with the number of its window (`NUMBER_COLUMN`)."""

    @property
    def is_over(self) -> bool:
        """Whether an action has run."""
        # `get` would wait for an action; Connect's client fills a dictionary
        java = getattr(self._observation, "_jo", None)
        return bool(java.future().isCompleted() if java is not None else getattr(self._observation, "_result", None))

    def receipts(self) -> dict[int, list[SplitReceipt]]:
        """The receipts of each window's splits, after the first action on `df` has ended.

        If Spark skipped splits (because of a filter that is always false, or a limit), the source is read once more,
        for the receipts alone.
        """
        found = _by_window(observed(self._observation).get("receipts") or ())
        count = sum(map(len, found.values()))
        if count < self._splits:
            _log.warning(
                "Spark skipped %d of %s: reading for the receipts", self._splits - count, counted(self._splits, "split")
            )
            rows = self._source.filter(f"{RECEIPT} is not null").select(RECEIPT).collect()
            found = _by_window(row[0] for row in rows)
        return found


def observed(observation: Observation) -> dict[str, Any]:
    """What was observed by an action that succeeded; nothing, if the optimizer removed the observation."""
    try:
        found: dict[str, Any] = observation.get
    except Exception:  # noqa: BLE001 - Spark 4.2 fails an assertion of its own, as a Java error, instead of answering
        return {}
    return found


def _by_window(texts: Iterable[Any]) -> dict[int, list[SplitReceipt]]:
    found: dict[int, list[SplitReceipt]] = defaultdict(list)
    for text in texts:
        told = json.loads(text)
        found[told["window"]].append(SplitReceipt.from_json(told["receipt"]))
    return defaultdict(list, {number: worst(receipts) for number, receipts in found.items()})
