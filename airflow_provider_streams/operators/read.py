"""Read one window of a stream with Spark, exactly, and prove it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from airflow_provider_streams.model.plan.plan import DEFAULT_SPLIT_BYTES, OnLoss, OnUnproven
from airflow_provider_streams.model.schema.decode_errors import OnDecodeError
from airflow_provider_streams.model.sinks.sink import Sink
from airflow_provider_streams.model.stream.source import Source
from airflow_provider_streams.model.window.basis import BasisLike
from airflow_provider_streams.model.window.missing_rows import OnMissing
from airflow_provider_streams.model.window.partition_key import KEY_FORMAT
from airflow_provider_streams.model.window.window import Window
from airflow_provider_streams.operators.base import LandingOperator
from airflow_provider_streams.operators.landing_arguments import UNSAID
from airflow_provider_streams.operators.previous_attempts import PreviousAttempts
from airflow_provider_streams.retry import terminal_errors
from airflow_provider_streams.timetables.run_facts import partition_keys, run_facts
from airflow_provider_streams.windows.claim.overrides import Overlap
from airflow_provider_streams.windows.plan.airflow_run_window import resolve_window
from airflow_provider_streams.windows.run.request import OneWindow

if TYPE_CHECKING:
    from airflow.sdk import Context


class ReadWindowOperator(LandingOperator):
    """Reads a window of a source with Spark and lands it; a re-run reads the same positions.

    Before reading, the plan is pinned in the journal and logged as a table. After it, the receipt is compared with
    the plan; only then is the table replaced, the window recorded as covered, and the sink's asset updated.

    With placeholders in the sink, each topic or stream of the source is planned, pinned, read, proven and recorded on
    its own, into its own table, and all of them in one Spark job. Those that fail do not hold up the others: they fail
    the task at the end, and its retry reads them alone.

    Args:
        window: an explicit window, or its text `start/end` (templated). Default: the run's partition, then its
            data interval.
        window_length: the length of the run's partition, where the DAG's timetable does not tell where the next one
            starts, as when assets trigger it: a time, or its text (`1h`, `1d Europe/Berlin`, see `parse_schedule`).

    The other arguments, `source`, `sink` and `reader` among them, are those of `LandingOperator`. With `dry_run`, the
    plan is pinned, logged and returned. With `replan` as well, a fresh one is only shown, and the window keeps the plan
    that it has.

    Returns (XCom):
        Of a sink with placeholders: `tables, rows, written, bytes, splits, largest, window, reader, by_earlier_tries`
        and more, of bounded size. Else
        `fingerprint, reader, window, start_cut, end_cut, rows, written, bytes, splits, verdict, window_rule, seconds,
        target, quarantined, dropped, unannounced` and more.
    """

    template_fields: Sequence[str] = ("window", *LandingOperator.template_fields)

    def __init__(
        self,
        *,
        window: Window | str | None = None,
        window_length: timedelta | str | None = None,
        source: Source,
        basis: BasisLike | None = None,
        sink: Sink | None = UNSAID,
        transform: str | None = None,
        columns: Sequence[str] | None = None,
        spark_conn_id: str | None = None,
        spark: Mapping[str, Any] | None = None,
        reader: str | None = None,
        on_loss: OnLoss = "fail",
        on_unproven: OnUnproven = "land",
        on_decode_error: OnDecodeError = "fail",
        max_decode_error_rate: float | None = None,
        dry_run: bool = False,
        replan: bool = False,
        full_refresh: bool = False,
        allow_fewer_rows: bool = False,
        overlap: Overlap = "refuse",
        target_split_bytes: int = DEFAULT_SPLIT_BYTES,
        on_missing: OnMissing | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(
            source=source,
            basis=basis,
            sink=sink,
            transform=transform,
            columns=columns,
            spark_conn_id=spark_conn_id,
            spark=spark,
            reader=reader,
            on_loss=on_loss,
            on_unproven=on_unproven,
            on_decode_error=on_decode_error,
            max_decode_error_rate=max_decode_error_rate,
            dry_run=dry_run,
            replan=replan,
            full_refresh=full_refresh,
            allow_fewer_rows=allow_fewer_rows,
            overlap=overlap,
            target_split_bytes=target_split_bytes,
            on_missing=on_missing,
            **kwargs,
        )
        self.window = window
        self.window_length = window_length

    def execute(self, context: Context) -> dict[str, Any]:
        """Plan, pin, read, compare, land, record.

        Raises:
            StreamsError: typed; a terminal one also is an `AirflowFailException`, so that no retry is spent on it.
        """
        with terminal_errors():
            resolved = resolve_window(self.window, self.window_length, run_facts(context))
            self.log.info("Window %s, from the run's %s", resolved.window, resolved.rule)
            is_own = PreviousAttempts.of(self, context).__contains__ if self.is_fan_out else None
            is_partition = context.get("partition_key")
            keys = partition_keys(context, resolved.window, KEY_FORMAT if is_partition else None)
            told = self._run(context, OneWindow(resolved.window, is_own), keys, resolved.window_schedule)
        return told | {"window_rule": resolved.rule}
