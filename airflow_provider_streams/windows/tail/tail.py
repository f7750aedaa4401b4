"""The last events of a source, over all its shards; and those that come after.

It reads by position: a plan from head to tail says what is stored, and each shard is read from its end. How many events
a stored unit holds is not known, so it goes back in growing steps until there are enough.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from airflow_provider_streams.errors import (
    IncompatibleSchemas,
    InvalidRequest,
    InvalidSchema,
    MissingDependency,
    ProtocolError,
    UnplannedColumns,
)
from airflow_provider_streams.model.plan.plan import Plan, PlanRequest, Split
from airflow_provider_streams.model.schema.ddl import parse_columns
from airflow_provider_streams.model.schema.payload import Auto
from airflow_provider_streams.model.window.window import LATEST, Window
from airflow_provider_streams.spark.datasource.event_reading import (
    EventReading,
    EventRows,
    RowMask,
    cause_of,
    kind_of,
    value_at,
)
from airflow_provider_streams.spark.job.concurrency import side_by_side
from airflow_provider_streams.systems.change_sampling import MOST_ROUNDS, plan_with_columns
from airflow_provider_streams.systems.registry import declaration_of
from airflow_provider_streams.systems.source_json import decoded_source, payloads_of
from airflow_provider_streams.windows.tail.event import Event
from airflow_provider_streams.windows.tail.shard_tail import Places, ShardTail, tails_of

if TYPE_CHECKING:
    from airflow_provider_streams.journal.store import Journal
    from airflow_provider_streams.model.stream.position import Position
    from airflow_provider_streams.model.stream.source import Source
    from airflow_provider_streams.systems.base import StreamSystem
    from airflow_provider_streams.systems.declaration import PayloadColumns
    from airflow_provider_streams.systems.system_pool import SystemPool

MOST_BYTES: Final = 256 * 1024 * 1024
"""How many stored bytes are looked through at most, over all shards."""
_FIRST_BYTES: Final = 256 * 1024
_GROWTH: Final = 4
_MOST_UNREADABLE: Final = 100
"""Stored units of a shard that cannot be read, until no older one is tried."""
_SPAN: Final = timedelta(hours=1)
_KNOWN_CUTS: Final = 1000
_READER: Final = "tail"


@dataclass(frozen=True, slots=True)
class Seen:
    """What was found, up to a plan's end."""

    events: tuple[Event, ...]
    plan: Plan
    notes: tuple[str, ...] = ()
    """What a person should know of the answer, a sentence each."""
    unreadable: tuple[str, ...] = ()
    """Of the notes, those on stored events that cannot be read."""

    @property
    def is_gone(self) -> bool:
        """Whether no shard is left."""
        return not self.plan.end_cut


class _Found(NamedTuple):
    """The last events of a shard, oldest first, and what was not looked at."""

    tail: ShardTail
    events: list[Event]
    left: ShardTail | None
    """Stored events before them that the limit of bytes left out; None: there are none, or none are needed."""
    problem: str = ""
    """Why what is stored before them cannot be read."""


@dataclass(frozen=True)
class Tail:
    """The end of one source.

    Args:
        systems: of its connection.
        source: whose events; by default, values are decoded by the system's own schemas.
        condition: which events are shown; None: all.
        most_bytes: how many stored bytes are looked through at most.
        places: known places between two events, for systems whose positions do not tell.
    """

    systems: SystemPool
    source: Source
    condition: RowMask | None = None
    most_bytes: int = MOST_BYTES
    places: Callable[[Plan], Places] = field(default=lambda _: {})

    def last(self, count: int) -> Seen:
        """The last events.

        Raises:
            InvalidRequest: the condition does not fit the events.
            SourceNotFound, AccessError, SystemUnavailable: as the system says.
        """
        plan, notes = self._plan(None)
        return self._read(plan, count, notes)

    def since(self, before: Plan, count: int) -> Seen:
        """The events after a plan's end; only the last `count`, if there are more bytes than may be looked through.

        Raises:
            SourceNotFound: the source was deleted.
            InvalidRequest, AccessError, SystemUnavailable: as above.
        """
        plan, notes = self._plan(before)
        notes += [f"{loss.shard}: events were removed before they were read: {loss.cause}" for loss in plan.losses]
        if plan.estimate.bytes > self.most_bytes:
            notes.append(f"{plan.estimate.bytes:,} stored bytes came meanwhile: only the last events of them are shown")
            return self._read(plan, count, notes)
        return self._read(plan, None, notes)

    # Planning

    def _plan(self, before: Plan | None) -> tuple[Plan, list[str]]:
        """A plan up to the tail, and why its payloads are not decoded, if they cannot be."""
        now = datetime.now(UTC)
        request = PlanRequest(
            self._decoded(), Window(now - _SPAN, now), _READER, basis="chained", on_loss="record", on_unproven="land"
        )
        if before is not None:
            request = replace(
                request,
                start_cut=before.end_cut,
                start_incarnation=before.source.incarnation,
                cuts_taken=(before.observed_at, None),
                changes_before=before.changes,
            )
        with self.systems.one() as system:
            try:
                plan = system.plan(request)
                EventReading(plan, self.condition).check(system)
            except (InvalidSchema, IncompatibleSchemas) as error:
                bare = replace(system.plan(replace(request, with_schemas=False)), decoding=None)
                EventReading(bare, self.condition).check(system)
                return bare, [f"values are shown as they are stored: {error}"]
        return plan, []

    def _decoded(self) -> Source:
        if any(payloads_of(self.source).values()):
            return self.source
        try:
            return decoded_source(self.source, {"value": Auto()})
        except InvalidRequest:  # its system has no schemas of its own
            return self.source

    # Reading

    def _read(self, plan: Plan, count: int | None, notes: list[str]) -> Seen:
        """The last events of a plan; None: all. Changes whose columns the plan lacks get these."""
        for _ in range(MOST_ROUNDS):
            try:
                return self._read_planned(plan, count, notes)
            except UnplannedColumns as error:
                plan = plan_with_columns(plan, parse_columns(error.columns))
        return self._read_planned(plan, count, notes)

    def _read_planned(self, plan: Plan, count: int | None, notes: list[str]) -> Seen:
        reading = EventReading(plan, self.condition)
        tails = tails_of(plan, reading.declared, {} if count is None else self.places(plan))
        budget = self.most_bytes // max(1, len(tails))
        read_one = partial(self._read_shard, reading, count, budget)
        open_, ended = _by_age(plan, tails)
        with side_by_side(read_one, open_, "streams-tail") as each:
            found = list(each)
        older: list[_Found] = []
        for tail in ended:  # segments that were replaced: older than all open ones
            if count is not None and sum(len(one.events) for one in (*older, *found)) >= count:
                break
            older.insert(0, read_one(tail))
        events = _last_of(found, older, count)
        every = [*older, *found]
        lacks = count is not None and len(events) < count
        problems = tuple(_unreadable(one.tail.shard, one.problem) for one in every if one.problem)
        return Seen(tuple(events), plan, (*notes, *problems, *(_limits(every) if lacks else ())), problems)

    def _read_shard(self, reading: EventReading, count: int | None, budget: int, tail: ShardTail) -> _Found:
        events: list[Event] = []
        left: ShardTail | None = tail
        step = tail.units if count is None else _first_units(tail, count)
        used = 0
        problems: list[str] = []
        with self.systems.one() as system:
            while left is not None and (count is None or len(events) < count):
                piece = left.piece(step)
                if count is not None and piece.bytes > budget - used:
                    piece = left.fitting(left.units_of(budget - used))
                    is_least = left.at_unit is not None and not used  # one unit is always read
                    if piece.bytes > budget - used and not is_least:
                        return _Found(tail, events[-count:], left, *problems[:1])
                try:
                    events = _events(reading, system, piece, count) + events
                except MissingDependency:
                    raise
                except (ProtocolError, InvalidRequest) as error:  # a malformed entry, or an encrypted one
                    if left.at_unit is not None and sum(span.entries for span in piece.spans) > 1:
                        step = 1  # to leave out nothing else
                        continue
                    problems.append(str(error))
                    if left.at_unit is None or len(problems) >= _MOST_UNREADABLE:
                        break
                    step = 0
                used, left, step = used + piece.bytes, left.before(piece), max(1, step * _GROWTH)
        return _Found(tail, events if count is None else events[-count:], None, *problems[:1])


def _unreadable(shard: str, problem: str) -> str:
    return f"not all can be shown: {problem if shard in problem else f'{shard}: {problem}'}"


def known_places(journal: Journal, source: Source, plan: Plan) -> Places:
    """The recorded cuts of a source, as far as they are known to be of the plan's shards."""
    if declaration_of(plan.source.system).starts_at_units:
        return {}  # every stored unit is a place between two events
    ours = dict(plan.source.incarnation)
    places: dict[str, list[Position]] = {}
    for recorded in journal.recorded_cuts(source.key, _KNOWN_CUTS):
        then = dict(recorded.incarnation)
        for shard, position in recorded.cut.items():
            if shard in then and then[shard] == ours.get(shard):
                places.setdefault(shard, []).append(position)
    return places


def _first_units(tail: ShardTail, count: int) -> int:
    """How far to go back first; a stored unit has at least one event, with few exceptions."""
    size = tail.units_of(_FIRST_BYTES)
    return size if tail.at_unit is None else min(size, count)


def _by_age(plan: Plan, tails: Sequence[ShardTail]) -> tuple[list[ShardTail], list[ShardTail]]:
    """The shards that the source ends with; and those that were replaced before, the newest first."""
    open_ = [tail for tail in tails if tail.shard in plan.end_cut]
    ended = [tail for tail in tails if tail.shard not in plan.end_cut]
    return open_, ended[::-1]


def _events(reading: EventReading, system: StreamSystem, piece: Split, count: int | None) -> list[Event]:
    """The last events of a piece; None: all."""
    kept: deque[EventRows] = deque()
    size = 0
    for rows in reading.batches(system, piece):
        kept.append(rows)
        size += len(rows.stored)
        while count is not None and size - len(kept[0].stored) >= count:
            size -= len(kept.popleft().stored)
    if count is not None and size > count:
        kept[0] = kept[0].last(len(kept[0].stored) - (size - count))
    return [event for rows in kept for event in _of_rows(reading, piece.shard, rows)]


def _of_rows(reading: EventReading, shard: str, rows: EventRows) -> Iterator[Event]:
    payload, stored, decoded = reading.payload, rows.stored, rows.decoded
    names = reading.metadata_columns()
    has_key = bool(payload.key) or (decoded is not None and decoded.key is not None)
    for row in range(len(stored)):
        metadata = {name: value_at(stored.column(name), row) for name in names}
        cause, kind = cause_of(rows, row), kind_of(rows, row)
        is_decoded = decoded is not None and not cause and not kind
        value = value_at(decoded.value, row) if decoded and is_decoded else None
        is_plain = not is_decoded or isinstance(value, bytes)  # of a topic without a schema
        version = decoded.versions[row].as_py() if decoded else None
        yield Event(
            (shard, tuple(metadata[name] for name in payload.position)),
            {reading.declared.metadata_name(name): one for name, one in metadata.items()},
            moment if isinstance(moment := metadata.get(payload.publish_time), datetime) else None,
            _key(payload, rows, row, is_decoded=is_decoded),
            None if is_plain else value,
            stored.column(payload.value)[row].as_py() if is_plain else None,
            cause,
            "" if version is None else str(version),
            has_key=has_key,
            kind=kind,
        )


def _key(payload: PayloadColumns, rows: EventRows, row: int, *, is_decoded: bool) -> Any:
    """Decoded, or text, or else bytes."""
    if rows.decoded is not None and rows.decoded.key is not None and is_decoded:
        key = value_at(rows.decoded.key, row)
    else:
        key = rows.stored.column(payload.key)[row].as_py() if payload.key else None
    if not isinstance(key, bytes):
        return key
    try:
        return key.decode()
    except UnicodeDecodeError:
        return key


def _last_of(open_: Sequence[_Found], ended: Sequence[_Found], count: int | None) -> list[Event]:
    """The last events of all shards: by time, or else as many of each open shard, and then of older ones.

    Args:
        open_: the shards that the source ends with.
        ended: those that were replaced, the oldest first.
        count: how many; None: all.
    """
    each = [one.events for one in (*ended, *open_)]
    events = [event for some in each for event in some]
    if any(event.moment for event in events):
        events.sort(key=lambda event: event.moment or LATEST)  # a time beyond the calendar
        return events if count is None else events[-count:]
    if count is None:
        return events
    shares = _shares([len(one.events) for one in open_], count)
    left = count - sum(shares)
    for one in reversed(ended):
        shares.insert(0, min(left, len(one.events)))
        left -= shares[0]
    return [event for some, share in zip(each, shares, strict=True) for event in some[len(some) - share :]]


def _shares(sizes: Sequence[int], count: int) -> list[int]:
    """As many of each, up to a number of all together."""
    shares, left = [0] * len(sizes), min(count, sum(sizes))
    while left:
        for number in reversed(range(len(sizes))):
            if left and shares[number] < sizes[number]:
                shares[number] += 1
                left -= 1
    return shares


def _limits(found: Iterable[_Found]) -> Iterator[str]:
    """What was not looked at, because of the limit of bytes."""
    for one in found:
        if one.left is None:
            continue
        if one.left == one.tail:
            needed = one.left.piece(1).bytes
            yield (
                f"{one.tail.shard}: not read. Events begin at known places only, and the nearest one is {needed:,} "
                "bytes before the tail. Raise --max-bytes, or record cuts: `airflow streams cuts record`"
            )
        else:
            read = one.tail.bytes - one.left.bytes
            yield (
                f"{one.tail.shard}: only the last {read:,} of {one.tail.bytes:,} stored bytes were looked through. "
                "Raise --max-bytes to go back further"
            )
