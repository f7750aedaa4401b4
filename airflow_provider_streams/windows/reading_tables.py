"""Read one window of many topics or streams, each into its own table."""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from airflow_provider_streams.errors import StartTrimmed, StreamsError
from airflow_provider_streams.model.coverage import RunRef
from airflow_provider_streams.model.landing import Landing
from airflow_provider_streams.windows.acts import Acts
from airflow_provider_streams.windows.ask import Ask
from airflow_provider_streams.windows.expansion import expand, is_new, vanished
from airflow_provider_streams.windows.fan_out import Preparing, Tables, failed, land_tables
from airflow_provider_streams.windows.planning import WindowRead
from airflow_provider_streams.windows.reading import Entry, RunIds, plan_only, prepare, recorded_planning
from airflow_provider_streams.windows.sightings import look

if TYPE_CHECKING:
    from collections.abc import Sequence

    from airflow_provider_streams.model.placeholders import SourceTable
    from airflow_provider_streams.model.plan import Plan
    from airflow_provider_streams.model.sink import Sink
    from airflow_provider_streams.systems.base import StreamSystem
    from airflow_provider_streams.windows.expansion import Expansion
    from airflow_provider_streams.windows.workplace import Workplace

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class WholeRead:
    """A window of a source to read, whose topics or streams land in tables of their own."""

    read: WindowRead
    """Of the source as a whole; each topic or stream is read alike."""
    ask: Ask
    """What is landed, but for the sink."""
    sink: Sink
    """With placeholders."""
    ids: RunIds
    acts: Acts = field(default_factory=Acts)
    is_own: Callable[[RunRef], bool] = lambda run: False  # noqa: ARG005 - nobody's
    """Whether a run is an earlier try of this task: what it has landed is not read again."""

    def ask_of(self, table: SourceTable) -> Ask:
        """What one of them lands."""
        landing = Landing(table.sink, self.ask.landing.transform, self.ask.landing.columns)
        return replace(self.ask, source=table.source, landing=landing)

    def read_of(self, table: SourceTable) -> WindowRead:
        """How one of them is read."""
        whole = self.read.question
        return replace(self.read, question=replace(whole, source=table.source, whole=whole.source))


class TablesReader:
    """Reads one window of many topics or streams.

    Args:
        place: where.
        whole: what.
    """

    def __init__(self, place: Workplace, whole: WholeRead) -> None:
        self._place, self._whole, self._journal = place, whole, place.journal

    def expand(self) -> tuple[Expansion, Tables]:
        """The topics or streams of the source now; and what is told of those that cannot be read, recorded.

        Raises:
            SourceNotFound: there is none.
            AccessError, SystemUnavailable: the system refuses or does not answer.
        """
        question = self._whole.read.question
        with closing(self._place.stream.system()) as system:
            expansion = expand(system, question.source, self._whole.sink)
            gone = list(vanished(self._journal, question, self._whole.sink, expansion))
            look(self._journal, system, question.source, again=is_new(self._journal, question.source, expansion))
        refused = Tables()
        problems: list[tuple[SourceTable, StreamsError]] = [(one.table, one.error()) for one in expansion.meetings]
        problems += [(one.table, one.error(question)) for one in gone]
        for table, problem in problems:
            refused = refused.and_then(self._refused(table, problem))
        return expansion, refused

    def plan(self, expansion: Expansion) -> list[tuple[SourceTable, Plan | StreamsError]]:
        """What a dry run shows: the plan of each, or why there is none."""

        def plan_one(system: StreamSystem, table: SourceTable) -> Plan:
            ask, read = self._whole.ask_of(table), self._whole.read_of(table)
            return plan_only(self._journal, system, ask, read, ids=self._whole.ids, acts=self._whole.acts)

        found = Preparing(self._place).each(expansion.tables, plan_one)
        return list(zip(expansion.tables, found, strict=True))

    def prepare(self, expansion: Expansion) -> tuple[list[tuple[SourceTable, Entry]], Tables]:
        """Plan and pin each that is not landed by an earlier try; and what became of the others."""

        def prepare_one(system: StreamSystem, table: SourceTable) -> Entry | None:
            ask, read = self._whole.ask_of(table), self._whole.read_of(table)
            if self._is_landed(read):
                return None
            return prepare(self._journal, system, ask, read, ids=self._whole.ids, acts=self._whole.acts)

        entries, outcome = [], Tables()
        found = Preparing(self._place).each(expansion.tables, prepare_one)
        for table, one in zip(expansion.tables, found, strict=True):
            if isinstance(one, StreamsError):
                outcome = outcome.and_then(failed(table, self._whole.read.question.window, one))
            elif one is None:
                outcome = outcome.and_then(Tables(before=1))
            else:
                entries.append((table, one))
        return entries, outcome

    def land(
        self,
        entries: Sequence[tuple[SourceTable, Entry]],
        done: Callable[[int, Tables], None],
        before: Tables | None = None,
    ) -> Tables:
        """See `land_tables`."""
        return land_tables(self._place, entries, done, before)

    def _refused(self, table: SourceTable, problem: StreamsError) -> Tables:
        read = self._whole.read_of(table)
        if self._whole.read.on_loss == "record" and isinstance(problem, StartTrimmed):
            _log.warning("%s", problem)
            return Tables()
        if self._is_landed(read, by_anyone=isinstance(problem, StartTrimmed)):  # it cannot be read again
            return Tables(before=1)
        try:
            with recorded_planning(self._journal, read, self._whole.ids):
                raise problem
        except StreamsError as error:
            return failed(table, read.question.window, error)

    def _is_landed(self, read: WindowRead, *, by_anyone: bool = False) -> bool:
        window = read.question.window
        known = self._journal.coverage(read.source_key, read.reader, window.start, window.end).select("covered")
        runs = [item.run for item in known if item.window == window and item.run is not None]
        return any(by_anyone or self._whole.is_own(run) for run in runs)
