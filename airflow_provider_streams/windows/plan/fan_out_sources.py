"""The topics or streams of a source whose tables are separate: which exist now, and which are gone."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from airflow_provider_streams.errors import InvalidRequest, StartTrimmed
from airflow_provider_streams.model.sinks.placeholders import SourceTable, TableCollision, check_placeholders, tables_of
from airflow_provider_streams.model.stream.cut import Cut
from airflow_provider_streams.model.window.basis import RecordedCuts
from airflow_provider_streams.systems.base import FanningOut
from airflow_provider_streams.systems.registry import declaration_of
from airflow_provider_streams.windows.plan.readiness import WindowQuestion, timed_request

if TYPE_CHECKING:
    from airflow_provider_streams.journal.store import Journal
    from airflow_provider_streams.model.sinks.sink import Sink
    from airflow_provider_streams.model.stream.position import Position
    from airflow_provider_streams.model.stream.source import Source
    from airflow_provider_streams.systems.base import StreamSystem


@dataclass(frozen=True, slots=True)
class Expansion:
    """The topics or streams of a source, each with its table."""

    tables: tuple[SourceTable, ...]
    meetings: tuple[TableCollision, ...] = ()
    """Those that would share a table: they are not read."""

    def __len__(self) -> int:
        return len(self.tables) + len(self.meetings)

    @property
    def keys(self) -> set[str]:
        """Of all these sources."""
        return {one.source.key for one in self.tables} | {one.source.key for one in self.meetings}


def expand(system: StreamSystem, source: Source, sink: Sink) -> Expansion:
    """The topics or streams of a source now.

    Raises:
        InvalidRequest: placeholders that cannot be filled in, or a system whose sources are always one.
        SourceNotFound: there are none.
        AccessError, SystemUnavailable: the system refuses or does not answer.
    """
    named = expand_named(source, sink)
    if named is not None:
        return named
    if not isinstance(system, FanningOut):
        raise InvalidRequest(f"{source}: the system {source.system} does not say which topics or streams it is")
    return _with_tables(source, sink, system.singles(source))


def expand_named(source: Source, sink: Sink) -> Expansion | None:
    """The same for a source that names them; None: only its system knows them.

    Raises:
        InvalidRequest: placeholders that cannot be filled in, or names that cannot be sources of their own.
    """
    declared = declaration_of(source.system)
    check_placeholders(sink, declared.placeholders, source.system)
    singles = declared.named_singles(source)
    return None if singles is None else _with_tables(source, sink, singles)


def _with_tables(source: Source, sink: Sink, singles: Iterable[Source]) -> Expansion:
    names_of = declaration_of(source.system).placeholder_names
    return Expansion(*tables_of(sink, [(one, names_of(one)) for one in singles]))


@dataclass(frozen=True, slots=True)
class Vanished:
    """A topic or stream that existed before a window, and no longer does."""

    table: SourceTable
    since: str
    """When it was seen."""

    def error(self, question: WindowQuestion) -> StartTrimmed:
        """The loss of the window."""
        return StartTrimmed(
            str(self.table.source),
            question.window.start.isoformat(),
            "nothing",
            f"it existed at {self.since}, and no longer exists: what it may have held of this window cannot be read. "
            f"Rows of other windows stay in {self.table.sink.asset_uri}",
        )


def vanished(journal: Journal, question: WindowQuestion, sink: Sink, expansion: Expansion) -> Iterator[Vanished]:
    """The topics or streams of a pattern or a scope that may have held events of a window, and no longer exist.

    The recorded cuts of the window's edges name them. Without cuts, they are all that was observed from the last
    observation before the window to the first one after it: any of these may have held events of the window.
    Topics or streams that a source names are planned even if they do not exist: their plans fail.
    """
    source, declared = question.source, declaration_of(question.source.system)
    if declared.named_singles(source) is not None:
        return
    present = expansion.keys
    looks = _between_cuts if isinstance(question.basis, RecordedCuts) else _looked_at
    for single, at in looks(journal, question).items():
        if single.key not in present:
            names = declared.placeholder_names(single)
            (table,) = tables_of(sink, [(single, names)])[0]
            yield Vanished(table, at.isoformat())


def has_changed(journal: Journal, source: Source, expansion: Expansion) -> bool:
    """Whether topics or streams came or went since the source was last observed."""
    seen = journal.tail_observation(source.key, datetime.now(UTC))
    known = set() if seen is None else {single.key for single in _by_single(source, seen.tail)}
    return expansion.keys != known


def _looked_at(journal: Journal, question: WindowQuestion) -> dict[Source, datetime]:
    """Those that held events when they were observed, and when that was last."""
    before, source = timed_request(question, "expansion").seen_before, question.source
    return {
        single: seen.at
        for seen in journal.tail_observations_around(source.key, before, question.window.end)
        for single, tail in _by_single(source, seen.tail).items()
        if any(max(position.parts) > 0 for position in tail.values())
    }


def _between_cuts(journal: Journal, question: WindowQuestion) -> dict[Source, datetime]:
    """Those whose positions differ between the recorded cuts of a window's edges, and when the cut was taken."""
    source, window = question.source, question.window
    start, end = (journal.cut_at(source.key, edge) for edge in (window.start, window.end))
    if start is None or end is None:
        return {}
    singles = [_by_single(source, edge.cut) for edge in (start, end)]
    return {
        single: edge.sampled_to
        for edge, own, other in zip((start, end), singles, reversed(singles), strict=True)
        for single, cut in own.items()
        if cut != other.get(single)
    }


def _by_single(source: Source, cut: Cut) -> dict[Source, Cut]:
    single_of = declaration_of(source.system).single_of
    found: dict[Source, dict[str, Position]] = {}
    for shard, position in cut.items():
        found.setdefault(single_of(source, shard), {})[shard] = position
    return {single: Cut(positions) for single, positions in found.items()}
