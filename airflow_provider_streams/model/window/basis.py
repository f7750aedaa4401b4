"""How a time becomes a cut: what users write as `basis=`."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import UTC, datetime, timedelta
from typing import Any, ClassVar, Literal

from airflow_provider_streams.errors import InvalidRequest
from airflow_provider_streams.model.parse_time_value import ParseTimeValue
from airflow_provider_streams.model.plan.row_filter import TIME_UNITS, TimeUnit
from airflow_provider_streams.model.window.window import Window

BasisName = Literal["publish", "append", "event", "chained", "cuts"]

CutText = str | Mapping[str, str]
"""`earliest`, `latest`, or per shard a position in one of the system's notations."""

SLACK = timedelta(seconds=60)
MAX_SKEW = timedelta(minutes=5)
MAX_LATENESS = timedelta(minutes=10)

Rows = Literal["exact", "superset"]
"""What a window by event time holds: its own rows, or all that was stored when its own may have been."""

_LONGEST = timedelta(days=36525)
_ANY_TIME = datetime.fromtimestamp(0, UTC)


def _check_length(what: str, given: object) -> None:
    if not isinstance(given, timedelta):
        raise InvalidRequest(f"{what} is a length of time, like timedelta(seconds=60), not {given!r}")
    if not timedelta(0) <= given <= _LONGEST:
        raise InvalidRequest(f"{what} is between nothing and a century, got {given}")


class _Basis(ParseTimeValue):
    """What all bases have in common."""

    __slots__ = ()
    name: ClassVar[BasisName]

    def not_before(self, window: Window) -> datetime:
        """The first moment at which a window's end can be certain."""
        return window.end


@dataclass(frozen=True, slots=True)
class PublishTime(_Basis):
    """`publish`: the events that their producers published in the window, exactly.

    Args:
        slack: how far publish times may be out of order; read on both sides of the window, then filtered.

    Raises:
        InvalidRequest: no length of time, or a negative one.
    """

    name: ClassVar[BasisName] = "publish"

    slack: timedelta = SLACK

    def __post_init__(self) -> None:
        _check_length("slack", self.slack)

    def not_before(self, window: Window) -> datetime:
        """See `_Basis`."""
        return window.end + self.slack


@dataclass(frozen=True, slots=True)
class RecordedCuts(_Basis):
    """`append`: what was stored between the cuts that a recorder took at the window's edges.

    Args:
        max_skew: how much later than an edge its cut may have been recorded.

    Raises:
        InvalidRequest: no length of time, or a negative one.
    """

    name: ClassVar[BasisName] = "append"

    max_skew: timedelta = MAX_SKEW

    def __post_init__(self) -> None:
        _check_length("max_skew", self.max_skew)


@dataclass(frozen=True, slots=True)
class EventTime(_Basis):
    """`event`: exactly the events whose own time is in the window, except for those that were stored too late.

    An event without a time of its own is in the window in which it was stored.

    Args:
        allowed_lateness: how much later than its own time an event may be stored. The window waits so much longer,
            and reads so much more. Later events are late: a recount (`lookback`) counts and lands them.
        slack: how far event times may be ahead of the clock, and publish times out of order.
        event_time: the field of the decoded value that is the event's time, or a path through its structs,
            `meta.created_at`; None: the time that the broker keeps (Pulsar).
        unit: of a field of whole numbers, since 1970: `s`, `ms`, `us` or `ns`; None: the field is a time, or a date.
        rows: `superset` (Pravega, where payloads cannot be decoded here): everything between the watermarks, for a
            transform to filter. Adjacent windows then share rows.

    Raises:
        InvalidRequest: no length of time, a negative one, no name, or a unit of nothing.
    """

    name: ClassVar[BasisName] = "event"

    allowed_lateness: timedelta = MAX_LATENESS
    slack: timedelta = SLACK
    event_time: str | None = None
    unit: TimeUnit | None = None
    rows: Rows = "exact"

    def __post_init__(self) -> None:
        _check_length("allowed_lateness", self.allowed_lateness)
        _check_length("slack", self.slack)
        if self.event_time is not None and not (isinstance(self.event_time, str) and self.event_time.strip()):
            raise InvalidRequest(f"event_time is the name of a field, like 'created_at', not {self.event_time!r}")
        if self.unit is not None and (self.unit not in TIME_UNITS or self.event_time is None):
            raise InvalidRequest(f"unit is the unit of event_time: {', '.join(TIME_UNITS)}; got {self.unit!r}")
        if self.rows not in ("exact", "superset") or (self.rows == "superset" and self.event_time is not None):
            raise InvalidRequest(f"rows is 'exact', or 'superset' without event_time, which filters; got {self.rows!r}")

    def not_before(self, window: Window) -> datetime:  # noqa: ARG002 - as in the others
        """Any time: events may carry any, and the system knows how far they have come."""
        return _ANY_TIME


@dataclass(frozen=True, slots=True)
class Chained(_Basis):
    """`chained`: from where the window before it ended to the tail."""

    name: ClassVar[BasisName] = "chained"


@dataclass(frozen=True, slots=True)
class Cuts(_Basis):
    """`cuts`: between the user's own positions, start inclusive, end exclusive.

    Args:
        start: where reading starts; None, or `earliest` (Pulsar: also of single shards): the first event still held.
            Where others may have been removed before it, the window is unproven.
        end: where reading ends; None: the tail at plan time.

    Raises:
        InvalidRequest: neither a text nor a mapping of them.
    """

    name: ClassVar[BasisName] = "cuts"

    start: CutText | None = None
    end: CutText | None = None

    def __post_init__(self) -> None:
        for cut in (self.start, self.end):
            if not isinstance(cut, str | Mapping | None):
                raise InvalidRequest(f"a cut is a text, or a position per shard, not {cut!r}")

    @property
    def digest(self) -> str:
        """16 hex digits that differ for other cuts; a cut's text may be long."""
        start = None if self.start == "earliest" else self.start  # the same as no start
        plain = [dict(cut) if isinstance(cut, Mapping) else cut for cut in (start, self.end)]
        return hashlib.sha256(json.dumps(plain, sort_keys=True).encode()).hexdigest()[:16]

    def not_before(self, window: Window) -> datetime:  # noqa: ARG002 - as in the others
        """Any time: the window is only a name."""
        return _ANY_TIME


Basis = PublishTime | RecordedCuts | EventTime | Chained | Cuts
BasisLike = Basis | Literal["publish", "append", "event", "chained"]
"""A basis as users write it; a name stands for its defaults."""

_KINDS: dict[str, type[Basis]] = {kind.name: kind for kind in (PublishTime, RecordedCuts, EventTime, Chained, Cuts)}

_TIMES = ("slack", "max_skew", "allowed_lateness")


def basis_from(given: BasisLike | None, known: Sequence[BasisName]) -> Basis | None:
    """What a user wrote, as one of the known bases, by default the first; None: it is none of them."""
    if isinstance(given, Basis):
        return given if given.name in known or isinstance(given, Cuts) else None
    name = known[0] if given is None else given
    return _KINDS[name]() if isinstance(name, str) and name in known else None


def class_name(name: BasisName) -> str:
    """The name of its class, as users write it in a DAG: `PublishTime`."""
    return _KINDS[name].__name__


def event_time_of(basis: Basis) -> dict[str, str] | None:
    """Which time of an event counts, as plain values; None: the basis alone says it."""
    if not isinstance(basis, EventTime):
        return None
    said = {"event_time": basis.event_time, "unit": basis.unit, "rows": None if basis.rows == "exact" else basis.rows}
    return {name: value for name, value in said.items() if value} or None


def basis_to_json(basis: Basis) -> dict[str, Any]:
    """As plain JSON values: its name, and its fields, times in seconds."""
    values = {one.name: getattr(basis, one.name) for one in fields(basis)}
    return {"name": basis.name, **{name: _plain(value) for name, value in values.items()}}


def basis_from_json(data: Mapping[str, Any]) -> Basis:
    """The reverse of `basis_to_json`."""
    values: dict[str, Any] = {
        name: timedelta(seconds=value) if name in _TIMES else value for name, value in data.items() if name != "name"
    }
    return _KINDS[data["name"]](**values)


def _plain(value: object) -> object:
    if isinstance(value, timedelta):
        return value.total_seconds()
    return dict(value) if isinstance(value, Mapping) else value
