"""A source whose topics or streams land in tables of their own: which they are now, and which are gone."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from airflow_provider_streams.errors import InvalidRequest, StartTrimmed
from airflow_provider_streams.model.basis import RecordedCuts
from airflow_provider_streams.model.cut import Cut
from airflow_provider_streams.model.placeholders import Meeting, SourceTable, check_placeholders, tables_of
from airflow_provider_streams.systems.base import FanningOut
from airflow_provider_streams.systems.registry import declaration_of
from airflow_provider_streams.windows.readiness import WindowQuestion, timed_request

if TYPE_CHECKING:
    from airflow_provider_streams.journal.store import Journal
    from airflow_provider_streams.model.position import Position
    from airflow_provider_streams.model.sink import Sink
    from airflow_provider_streams.model.source import Source
    from airflow_provider_streams.systems.base import StreamSystem


@dataclass(frozen=True, slots=True)
class Expansion:
    """The topics or streams of a source, each with its table."""

    tables: tuple[SourceTable, ...]
    meetings: tuple[Meeting, ...] = ()
    """Those whose tables would be others', too: they are not read."""

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
    """The same where a source names them; None: its system must be asked.

    Raises:
        InvalidRequest: placeholders that cannot be filled in, or what cannot be a source of its own.
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
    """A topic or stream that was there before a window, and is not any more."""

    table: SourceTable
    since: str
    """When it was seen."""

    def error(self, question: WindowQuestion) -> StartTrimmed:
        """What is lost of the window."""
        return StartTrimmed(
            str(self.table.source),
            question.window.start.isoformat(),
            "nothing",
            f"it was there at {self.since}, and no longer exists: what it may have held of this window cannot be read. "
            f"Rows of other windows stay in {self.table.sink.asset_uri}",
        )


def vanished(journal: Journal, question: WindowQuestion, sink: Sink, expansion: Expansion) -> Iterator[Vanished]:
    """The topics or streams of a pattern or a scope that may have held events of a window, and are no longer there.

    Between recorded cuts, these say it. Else it is all that was seen from the last look before the window to the first
    one after it: what was there then may have been there before, and nothing proves that it held nothing of the window.
    Those that a source names are planned, whether they are there or not: their plans fail.
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


def is_new(journal: Journal, source: Source, expansion: Expansion) -> bool:
    """Whether topics or streams are there that nobody has seen yet."""
    seen = journal.sighting(source.key, datetime.now(UTC))
    known = set() if seen is None else {single.key for single in _by_single(source, seen.tail)}
    return not expansion.keys <= known


def _looked_at(journal: Journal, question: WindowQuestion) -> dict[Source, datetime]:
    """Those that held events when somebody looked, and when that was last."""
    before, source = timed_request(question, "expansion").seen_before, question.source
    return {
        single: seen.at
        for seen in journal.sightings_around(source.key, before, question.window.end)
        for single, tail in _by_single(source, seen.tail).items()
        if any(max(position.parts) > 0 for position in tail.values())
    }


def _between_cuts(journal: Journal, question: WindowQuestion) -> dict[Source, datetime]:
    """Those that stand in one recorded cut of a window's edges otherwise than in the other, and when it was taken."""
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
