"""Make a boundary in a Pravega stream itself, and record it as a cut."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing
from datetime import datetime
from typing import TYPE_CHECKING, Any, cast

from airflow.sdk import BaseOperator

from airflow_provider_streams.connections.journal import open_journal
from airflow_provider_streams.errors import InvalidRequest
from airflow_provider_streams.hooks.base import hook_for
from airflow_provider_streams.model.window.window import utc_moment
from airflow_provider_streams.retry import terminal_errors
from airflow_provider_streams.systems.pravega.source import PravegaSource
from airflow_provider_streams.template_rendering import RendersValues
from airflow_provider_streams.windows.plan.pravega_epoch import roll_epoch

if TYPE_CHECKING:
    from airflow.sdk import Context

    from airflow_provider_streams.systems.pravega.system import PravegaSystem


class PravegaRollEpochOperator(RendersValues, BaseOperator):
    """Ends all open segments of a stream at a tick, one to one, and records that boundary as the tick's cut.

    It replaces a recorder: windows of basis `append` between two ticks are sets of sealed segments, whose bytes and
    lengths never change. It changes the stream: it needs write permission, each tick makes as many segments as there
    are, and the scaling policy should be fixed, as auto-scaling also ends segments. Repeating a tick does no harm.
    Writers go on; acknowledgements wait for some tenths of a second.

    Args:
        source: the stream; one.
        moment: the tick (aware, or ISO 8601; templated); default: the time the run was due, `dag_run.run_after`.
        recorder: the name to store with the entry; default `dag_id.task_id`.

    Returns (XCom):
        `cut, cut_text, segments, sequence, is_edge`: the boundary, by segment and as text that the Java client reads,
        and the segments that ended; `is_edge` is false if another recorder's cut stands for the tick.
    """

    template_fields: Sequence[str] = ("source", "moment", "recorder")
    ui_color = "#efe3f5"

    def __init__(
        self, *, source: PravegaSource, moment: datetime | str | None = None, recorder: str | None = None, **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        if not isinstance(source, PravegaSource):
            raise InvalidRequest(f"source must be a PravegaSource, got {type(source).__name__}")
        if not source.is_one:
            raise InvalidRequest(f"{source}: an epoch is rolled in one stream: use one operator for each stream")
        self.source, self.moment, self.recorder = source, moment, recorder

    def execute(self, context: Context) -> dict[str, Any]:
        """Roll, and record.

        Raises:
            InvalidRequest: the tick has not come yet, or is no time.
            SystemUnavailable: the scaling does not end; a retry goes on with it.
        """
        recorder = self.recorder or f"{context['ti'].dag_id}.{context['ti'].task_id}"
        with terminal_errors(), open_journal() as journal, closing(hook_for(self.source).system()) as system:
            tick = _moment(self.moment, context)
            rolled = roll_epoch(journal, cast("PravegaSystem", system), self.source, tick, recorder)
        self.log.info("Ended %s", ", ".join(segment.name for segment in rolled.ends.segments))
        if not rolled.is_edge:
            self.log.warning("Another recorder's cut stands for this tick: windows do not end at this boundary")
        return rolled.to_json()


def _moment(moment: datetime | str | None, context: Mapping[str, Any]) -> datetime:
    if moment is None:
        due: datetime = context["dag_run"].run_after
        return due
    return utc_moment(moment)
