"""What a reader is to land, and how that differs from what it lands."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from airflow_provider_streams.errors import InvalidRequest, LandingMismatch, WindowNotAligned
from airflow_provider_streams.model.sinks.landing import Landing
from airflow_provider_streams.model.window.window import Window
from airflow_provider_streams.model.window.window_schedule import Every, WindowSchedule, parse_schedule
from airflow_provider_streams.systems.source_json import payloads_of

if TYPE_CHECKING:
    from airflow_provider_streams.journal.landings import NewLanding, StoredLanding
    from airflow_provider_streams.model.stream.source import Source


@dataclass(frozen=True, slots=True)
class LandingRequest:
    """What a reader is to land."""

    source: Source
    reader: str
    landing: Landing
    basis: str
    window_schedule: WindowSchedule | None = None
    """How its windows tile time; None: the caller does not know."""
    event_time: Mapping[str, str] | None = None
    """Basis `event`: see `event_time_of`."""
    is_scheduled: bool = False
    """Whether the window is a run's, so that `window_schedule` is how its DAG's runs tile time."""

    def __post_init__(self) -> None:
        # the source alone says what is decoded
        said = payloads_of(self.source)
        decoded = replace(self.landing, value=said.get("value"), key=said.get("key"))
        object.__setattr__(self, "landing", decoded)


_PARTS: Final = {
    "target": "table",
    "columns": "columns",
    "transform": "transform",
    "apply": "apply",
    "value": "values",
    "key": "keys",
}
"""What a landing is, and how messages name it."""


def mismatch(kept: StoredLanding, landing_request: LandingRequest, windows: Sequence[Window]) -> InvalidRequest | None:
    """The first difference, as an error; None: the reader lands what is requested."""
    return (
        is_other_landing(kept, landing_request)
        or is_other_basis(kept, landing_request)
        or not_aligned(kept, landing_request, windows)
    )


def is_other_landing(kept: StoredLanding, landing_request: LandingRequest) -> LandingMismatch | None:
    """Another table, or other columns, transform, decoding or way to apply changes.

    A reader without a table may begin anywhere.
    """
    if kept.target is None:
        return None
    asked = landing_request.landing.to_json()
    tied = " (its windows are by a field of theirs)" if "event_time" in kept_event_time(kept) else ""
    found = {
        part: f"{name} {_shown(asked[part])} instead of {_shown(kept.landing.get(part))}{tied * (part == 'value')}"
        for part, name in _PARTS.items()
        if asked[part] != kept.landing.get(part)
    }
    if not found:
        return None
    is_typed = kept.landing.get("value") or kept.landing.get("key")  # bytes have no column of decoded rows
    is_decoding = found.keys() <= {"value", "key"} and not tied
    hint = _PLANNED_ANEW if is_decoding and is_typed else ""  # see `decoded_as_requested`
    return LandingMismatch(
        landing_request.source,
        landing_request.reader,
        kept.target,
        landing_request.landing,
        list(found.values()),
        hint=hint,
    )


_PLANNED_ANEW: Final = (
    "plan the window again with replan=True, if its rows then have all columns of the table, of the same types (the "
    "reader decodes so from then on)"
)


def begins_columns(kept: StoredLanding, landing_request: LandingRequest) -> bool:
    """Whether the only difference is that bytes were landed so far, and columns are requested."""
    asked, landing = landing_request.landing.to_json(), kept.landing
    if kept.target is None or landing.get("value") or landing.get("key"):
        return False
    same = all(asked[part] == landing.get(part) for part in ("target", "columns", "transform", "apply"))
    return same and bool(asked["value"] or asked["key"])


def is_other_basis(kept: StoredLanding, landing_request: LandingRequest) -> LandingMismatch | None:
    """Windows of two bases do not tile. A user's own positions may fill a hole: they are an explicit choice."""
    basis = _lasting(landing_request.basis)
    if basis is None or kept.basis is None:
        return None
    asked, before = (basis, landing_request.event_time or {}), (kept.basis, kept_event_time(kept))
    if asked == before:
        return None
    difference = [f"basis {_told(*asked)} instead of {_told(*before)}"]
    return LandingMismatch(
        landing_request.source, landing_request.reader, kept.target or "no table", landing_request.landing, difference
    )


def _moved(kept: WindowSchedule, landing_request: LandingRequest) -> WindowSchedule | None:
    """How the runs tile time now, if in cells of the same length as before, with other edges."""
    own = landing_request.window_schedule
    is_moved = isinstance(kept, Every) and isinstance(own, Every) and kept.length == own.length and kept != own
    return own if is_moved else None


def not_aligned(
    kept: StoredLanding, landing_request: LandingRequest, windows: Sequence[Window]
) -> WindowNotAligned | None:
    """The first window that is no cell of the reader's window schedule."""
    if kept.window_schedule is None:
        return None
    window_schedule = parse_schedule(kept.window_schedule)
    for window in windows:
        if not window_schedule.is_cell(window):
            return WindowNotAligned(
                landing_request.source,
                landing_request.reader,
                window,
                window_schedule,
                window_schedule.cell(window.start),
                moved_to=_moved(window_schedule, landing_request) if landing_request.is_scheduled else None,
            )
    return None


def decoded_as_requested(kept: StoredLanding, landing_request: LandingRequest) -> StoredLanding:
    """The landing if later windows are decoded as requested, as windows that are planned again may be.

    Columns may only grow. Windows by a decoded field are excluded: an event that only one of two windows can decode has
    two times, and would be in both windows or in none. So are changes that are applied to a table: of two values of one
    change, none is newer.
    """
    if "event_time" in kept_event_time(kept) or kept.landing.get("apply"):
        return kept
    return replace(kept, landing={**kept.landing, **requested_payloads(landing_request)})


def kept_event_time(kept: StoredLanding | None) -> Mapping[str, str]:
    """Which time of an event counts for a reader by event time, see `event_time_of`; empty: the broker's."""
    landing = kept.landing if kept is not None else None
    found: Mapping[str, str] = (landing or {}).get("event_time", {})
    return found


def requested_payloads(landing_request: LandingRequest) -> dict[str, Any]:
    """What values and keys are decoded as, as plain JSON values."""
    said = landing_request.landing.to_json()
    return {what: said[what] for what in ("value", "key")}


def new_landing(landing_request: LandingRequest) -> NewLanding:
    """The request, as the journal keeps it."""
    from airflow_provider_streams.journal.landings import NewLanding  # noqa: PLC0415 - SQL when used

    landing = {
        **landing_request.landing.to_json(),
        **({"event_time": dict(landing_request.event_time)} if landing_request.event_time else {}),
    }
    return NewLanding(
        landing,
        None if landing_request.window_schedule is None else str(landing_request.window_schedule),
        _lasting(landing_request.basis),
    )


def new_like(kept: StoredLanding, landing_request: LandingRequest) -> NewLanding:
    """As `new_landing`, with the kept window schedule and basis."""
    from airflow_provider_streams.journal.landings import NewLanding  # noqa: PLC0415 - SQL when used

    new = new_landing(landing_request)
    return NewLanding(new.landing, kept.window_schedule or new.window_schedule, kept.basis or new.basis)


def _lasting(basis: str) -> str | None:
    return None if basis == "cuts" else basis


def _told(basis: str, event_time: Mapping[str, str]) -> str:
    return " ".join([repr(basis), *(f"{name}={value!r}" for name, value in event_time.items())])


def _shown(value: object) -> str:
    if value is None:
        return "none"
    if isinstance(value, dict) and "format" not in value:
        return f"AutoCdc({', '.join(f'{name}={given!r}' for name, given in value.items() if given)})"
    if isinstance(value, dict):
        arguments = ", ".join(f"{name}={text!r}" for name, text in value.items() if name != "format")
        return f"{value['format']} {arguments}".rstrip()
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)
