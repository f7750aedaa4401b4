"""Where windows are worked on inside Airflow: its connections, its configuration, its metrics, its Spark."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from airflow.sdk.configuration import conf

from airflow_provider_streams.hooks import metrics
from airflow_provider_streams.hooks.base import hook_for
from airflow_provider_streams.hooks.journal import open_journal
from airflow_provider_streams.spark.settings import SparkSettings
from airflow_provider_streams.systems.sources import source_to_json
from airflow_provider_streams.windows.workplace import Workplace

if TYPE_CHECKING:
    from airflow_provider_streams.model.source import Source


@contextmanager
def workplace(
    source: Source, spark_conn_id: str | None = None, spark: Mapping[str, Any] | None = None
) -> Iterator[Workplace]:
    """Where windows of a source are worked on; the journal is open meanwhile.

    Args:
        source: whose.
        spark_conn_id: a Spark connection; None: Spark inside this process.
        spark: the user's settings of Spark, see `spark.settings`.

    Raises:
        InvalidRequest: unknown settings.
        JournalError: the journal cannot be used.
    """
    SparkSettings.of(spark)
    with open_journal() as journal:
        journal.introduce(source.key, source_to_json(source))
        yield Workplace(journal, hook_for(source), _Spark(spark_conn_id, spark).run, metrics, _small_plan_bytes())


class _Spark:
    """Runs jobs where a connection says, and as its user says."""

    def __init__(self, conn_id: str | None, settings: Mapping[str, Any] | None) -> None:
        self._conn_id, self._settings = conn_id, settings

    def run(self, work: Any) -> Any:
        from airflow_provider_streams.hooks import spark  # noqa: PLC0415 - Spark is loaded when it is used
        from airflow_provider_streams.spark.batch_spec import ChunkSpec  # noqa: PLC0415

        launch = spark.launch_chunk if isinstance(work, ChunkSpec) else spark.launch
        return launch(work, self._conn_id, self._settings)


def _small_plan_bytes() -> int:
    from airflow_provider_streams.spark.spec import SMALL_PLAN_BYTES  # noqa: PLC0415 - Spark's side when used

    return int(conf.getint("streams", "small_plan_bytes", fallback=SMALL_PLAN_BYTES))
