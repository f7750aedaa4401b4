"""Record where streams end now, so that windows of time can be read by position later."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack, closing
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from airflow.providers.common.compat.sdk import conf
from airflow.sdk import BaseOperator

from airflow_provider_streams.connections.journal import open_journal
from airflow_provider_streams.errors import InvalidRequest, StreamsError
from airflow_provider_streams.hooks.base import hook_for
from airflow_provider_streams.model.stream.source import Source
from airflow_provider_streams.retry import error_from_event, terminal_errors
from airflow_provider_streams.systems.source_json import source_to_json
from airflow_provider_streams.template_rendering import RendersValues
from airflow_provider_streams.triggers.cuts import RecordCutsTrigger
from airflow_provider_streams.windows.plan.cut_recording import RecordOutcome, record, utc_now

if TYPE_CHECKING:
    from airflow.sdk import Context

    from airflow_provider_streams.systems.base import StreamSystem


class RecordCutsOperator(RendersValues, BaseOperator):
    """Samples the tails of sources and stores them in the journal: windows of basis `append` are read between them.

    Two ways to run it:

    - once, in a DAG that runs often (`schedule="* * * * *"`): without `every`;
    - on a clock, for a while: with `every` and `duration`, in the triggerer when `deferrable`. In a DAG with
      `schedule="@continuous"` that is all the time.

    A recorder is not a reader: keep it in a DAG of its own. Any number of recorders may run for one source. One that
    stops loses nothing: edges in the gap move to its end, for the windows before and after them. Such windows are read
    only if `max_skew` allows so great a move.

    Args:
        sources: what to sample, one or several; their texts are templated.
        every: the interval of the clock, at full multiples since 1970.
        duration: how long to go on; with `every`.
        keep: forget cuts older than this; None: keep all. Longer than the oldest window still to be read.
        recorder: the name to store with the entries; default `dag_id.task_id`.
        deferrable: with `every`, run in the triggerer; default `[operators] default_deferrable`.

    Returns (XCom):
        once: for each source `source, sequence, sampled_from, sampled_to`; on a clock: `ticks, stored, failing`.
    """

    template_fields: Sequence[str] = ("sources", "recorder")
    ui_color = "#efe3f5"

    def __init__(
        self,
        *,
        sources: Source | Sequence[Source],
        every: timedelta | None = None,
        duration: timedelta | None = None,
        keep: timedelta | None = None,
        recorder: str | None = None,
        deferrable: bool | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.sources = [sources] if isinstance(sources, Source) else list(sources)
        if not self.sources or not all(isinstance(source, Source) for source in self.sources):
            raise InvalidRequest("RecordCutsOperator takes one source or several, like PravegaSource('scope/stream')")
        if (every is None) != (duration is None) or (every is not None and every <= timedelta(0)):
            raise InvalidRequest("give both every and duration, or none; every must be positive")
        self.every, self.duration, self.keep, self.recorder = every, duration, keep, recorder
        if deferrable is None:
            deferrable = conf.getboolean("operators", "default_deferrable", fallback=False)
        if every is not None and not deferrable:
            raise InvalidRequest("every needs the triggerer: add deferrable=True, or leave out every and duration")
        self.deferrable = deferrable

    def execute(self, context: Context) -> list[dict[str, Any]]:
        """Sample and store now, or hand over to the triggerer.

        Raises:
            StreamsError: a source could not be sampled; those that could are stored.
        """
        recorder = self.recorder or f"{context['ti'].dag_id}.{context['ti'].task_id}"
        if self.every is not None and self.duration is not None:
            self._defer(recorder, self.every, self.duration)
        with terminal_errors(), ExitStack() as stack:
            systems: dict[str, StreamSystem | StreamsError] = {}
            for source in self.sources:
                if source.conn_id not in systems:
                    systems[source.conn_id] = self._system(source, stack)
            journal = stack.enter_context(open_journal())
            results = record(journal, systems, self.sources, recorder)
            if self.keep is not None:
                for source in self.sources:
                    journal.prune_cuts(utc_now() - self.keep, source.key)
            self._report(results)
        return [result.to_json() for result in results]

    def execute_complete(self, context: Context, event: dict[str, Any] | None = None) -> dict[str, Any]:  # noqa: ARG002
        """Resume when the clock has ended."""
        if not event or event.get("status") != "success":
            raise error_from_event(event or {"error_type": "StreamsError", "message": "the recorder fired no event"})
        return {name: value for name, value in event.items() if name != "status"}

    def _system(self, source: Source, stack: ExitStack) -> StreamSystem | StreamsError:
        """The system of a source; if its connection is wrong, the error: other sources are recorded all the same."""
        try:
            return stack.enter_context(closing(hook_for(source).system()))
        except StreamsError as error:
            return error

    def _defer(self, recorder: str, every: timedelta, duration: timedelta) -> None:
        until = utc_now() + duration
        trigger = RecordCutsTrigger(
            [source_to_json(source) for source in self.sources],
            every.total_seconds(),
            recorder,
            until.isoformat(),
            None if self.keep is None else self.keep.total_seconds(),
        )
        self.defer(trigger=trigger, method_name="execute_complete")

    def _report(self, results: list[RecordOutcome]) -> None:
        errors: list[StreamsError] = []
        for result in results:
            if result.error is not None:
                errors.append(result.error)
                self.log.error("No cut of %s was recorded: %s", result.source, result.error)
            elif result.sequence is None:
                self.log.info("Another recorder of %s was quicker", result.source)
            else:
                self.log.info("Recorded cut %d of %s", result.sequence, result.source)
        # a retryable one first: a retry may help it, and does no harm to the others
        for error in sorted(errors, key=lambda one: not one.retryable):
            raise error
