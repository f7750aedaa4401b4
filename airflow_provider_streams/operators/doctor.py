"""Check a set-up in a DAG: on the worker where readers run, with its network, its packages and its connections."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseOperator

from airflow_provider_streams.errors import InvalidRequest, SetupNotReady
from airflow_provider_streams.model.sinks.sink import Sink
from airflow_provider_streams.model.stream.source import Source, check_source
from airflow_provider_streams.model.window.basis import SLACK
from airflow_provider_streams.model.window.window_schedule import schedule_of
from airflow_provider_streams.retry import terminal_errors
from airflow_provider_streams.template_rendering import RendersValues

if TYPE_CHECKING:
    from airflow.sdk import Context

    from airflow_provider_streams.doctor.finding import Finding
    from airflow_provider_streams.doctor.setup import Setup


class StreamsDoctorOperator(RendersValues, BaseOperator):
    """Does what `airflow streams doctor` does, in a task: checks a set-up before readers run.

    It logs each finding, and reads and lands nothing.

    Args:
        source: what readers will read; its texts are templated.
        schedule: how windows tile time: a cron expression, `@hourly`, seconds, or a length like `15m`.
        outage: how long readers may be down without losing events.
        slack: disorder of publish times, which the difference of clocks is compared with.
        reader: whose windows and holds count (templated); None: any reader's holds.
        sink: where rows will land; its texts are templated. None: it is not checked.
        write: also write a file to the sink's store under a name of ours, read it back and remove it.
        spark_conn_id: a Spark connection (templated), whose Spark runs the small job; None: one as inside a task.
        spark: Spark's settings, as readers take them (templated).
        strict: whether warnings fail the task as well.

    Raises:
        InvalidRequest: `write` without a sink, or a source that is none.
        InvalidWindow: `schedule` is no schedule.

    Raises (when it runs):
        SetupNotReady: there are errors; or warnings, with `strict`.

    Returns (XCom):
        The report, as `airflow streams doctor --json` prints it.
    """

    template_fields: Sequence[str] = ("source", "sink", "reader", "spark_conn_id", "spark")
    ui_color = "#f3e6cf"

    def __init__(
        self,
        *,
        source: Source,
        schedule: str = "@hourly",
        outage: timedelta = timedelta(days=7),
        slack: timedelta = SLACK,
        reader: str | None = None,
        sink: Sink | None = None,
        write: bool = False,
        spark_conn_id: str | None = None,
        spark: Mapping[str, Any] | None = None,
        strict: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        if write and sink is None:
            raise InvalidRequest("write=True writes to the store of a sink: name the sink")
        schedule_of(schedule)
        self.source, self.schedule, self.outage, self.slack = check_source(source), schedule, outage, slack
        self.reader, self.sink, self.write = reader, sink, write
        self.spark_conn_id, self.spark, self.strict = spark_conn_id, spark, strict

    def execute(self, context: Context) -> dict[str, Any]:  # noqa: ARG002 - Airflow's signature
        """Examine, log, and fail if readers would.

        Raises:
            StreamsError: typed; `SetupNotReady` among them.
        """
        from airflow_provider_streams.doctor.examination import examine  # noqa: PLC0415 - SQL and Arrow when it runs

        with terminal_errors():
            report = examine(self._setup())
            for one in report.findings:
                self._log_finding(one)
            self.log.info("%s", report.summary())
            status = report.exit_status(strict=self.strict)
            if status:
                levels = ("error", "warning") if self.strict else ("error",)
                failed = [f"{one.area}: {one.check}: {one.says}" for one in report.findings if one.level in levels]
                raise SetupNotReady(report.subject, failed)
        return {**report.to_json(), "exit_status": status}

    def _setup(self) -> Setup:
        from airflow_provider_streams.doctor.setup import Setup  # noqa: PLC0415 - as above

        return Setup(
            self.source.system,
            self.source.conn_id,
            self.source,
            self.reader,
            schedule_of(self.schedule),
            self.outage,
            self.slack,
            self.sink,
            self.write,
            self.spark_conn_id,
            self.spark,
        )

    def _log_finding(self, one: Finding) -> None:
        tell = {"error": self.log.error, "warning": self.log.warning}.get(one.level, self.log.info)
        step = f" -> {one.next_step}" if one.next_step else ""
        tell("%s: %s: %s: %s%s", one.level, one.area, one.check, one.says, step)
