"""What a reader is asked to land, and how that differs from what it lands."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from airflow_provider_streams.errors import InvalidRequest, LandingMismatch, OffGrid
from airflow_provider_streams.model.grid import Grid, parse_grid
from airflow_provider_streams.model.landing import Landing
from airflow_provider_streams.model.window import Window
from airflow_provider_streams.systems.sources import payloads_of

if TYPE_CHECKING:
    from airflow_provider_streams.journal.landings import KeptLanding, NewLanding
    from airflow_provider_streams.model.source import Source


@dataclass(frozen=True, slots=True)
class Ask:
    """What a reader is asked to land."""

    source: Source
    reader: str
    landing: Landing
    basis: str
    grid: Grid | None = None
    """How its windows tile time; None: whoever asks does not know."""
    event_time: Mapping[str, str] | None = None
    """Basis `event`: see `event_time_of`."""

    def __post_init__(self) -> None:
        # what is decoded is what the source says, whoever put the landing together
        said = payloads_of(self.source)
        decoded = replace(self.landing, value=said.get("value"), key=said.get("key"))
        object.__setattr__(self, "landing", decoded)


def check_won(kept: KeptLanding, ask: Ask, windows: Sequence[Window]) -> None:
    """Of several runs that would begin a reader's landing at the same moment, one does; those of other asks end here.

    Raises:
        LandingMismatch, OffGrid: the landing that counts by now is not what is asked.
    """
    problem = mismatch(kept, ask, windows)
    if problem is not None:
        raise problem


def mismatch(kept: KeptLanding, ask: Ask, windows: Sequence[Window]) -> InvalidRequest | None:
    """The first difference there is, as the error that tells it; None: what is asked is what is landed."""
    return other_landing(kept, ask) or other_basis(kept, ask) or off_grid(kept, ask, windows)


def other_landing(kept: KeptLanding, ask: Ask) -> LandingMismatch | None:
    """Another table, or other columns, transform or decoding. Who lands nowhere yet may begin anywhere."""
    if kept.landing is None or kept.target is None:
        return None
    asked = ask.landing.to_json()
    names = {"target": "table", "columns": "columns", "transform": "transform", "value": "values", "key": "keys"}
    tied = " (its windows are by a field of theirs)" if "event_time" in kept_event_time(kept) else ""
    found = {
        part: f"{name} {_shown(asked[part])} instead of {_shown(kept.landing.get(part))}{tied * (part == 'value')}"
        for part, name in names.items()
        if asked[part] != kept.landing.get(part)
    }
    if not found:
        return None
    hint = _PLANNED_ANEW if found.keys() <= {"value", "key"} and not tied else ""  # see `decoded_as_asked`
    return LandingMismatch(ask.source, ask.reader, kept.target, ask.landing, list(found.values()), hint=hint)


_PLANNED_ANEW: Final = (
    "plan the window anew with replan=True, if its rows then have all columns of the table, of the same types (the "
    "reader decodes so from then on)"
)


def other_basis(kept: KeptLanding, ask: Ask) -> LandingMismatch | None:
    """Windows of two bases do not tile. A user's own positions may fill a hole: they are an act by themselves."""
    basis = _lasting(ask.basis)
    if basis is None or kept.basis is None:
        return None
    asked, before = (basis, ask.event_time or {}), (kept.basis, kept_event_time(kept))
    if asked == before:
        return None
    difference = [f"basis {_told(*asked)} instead of {_told(*before)}"]
    return LandingMismatch(ask.source, ask.reader, kept.target or "no table", ask.landing, difference)


def off_grid(kept: KeptLanding, ask: Ask, windows: Sequence[Window]) -> OffGrid | None:
    """A window that is no cell of the reader's grid."""
    if kept.grid is None:
        return None
    grid = parse_grid(kept.grid)
    for window in windows:
        if not grid.is_cell(window):
            return OffGrid(ask.source, ask.reader, window, grid, grid.cell(window.start))
    return None


def decoded_as_asked(kept: KeptLanding, ask: Ask) -> KeptLanding:
    """Windows that are planned anew may be decoded otherwise, and so is what comes; columns may only grow, as ever.

    Not those by a decoded field: an event that is undecodable for one of two windows, and not for the other, has two
    times, and would be in both or in none.
    """
    is_tied = kept.landing is None or "event_time" in kept_event_time(kept)
    return kept if is_tied or kept.landing is None else replace(kept, landing={**kept.landing, **asked_payloads(ask)})


def kept_event_time(kept: KeptLanding | None) -> Mapping[str, str]:
    """Which time of an event counts for a reader by event time, see `event_time_of`; empty: the broker's."""
    landing = kept.landing if kept is not None else None
    found: Mapping[str, str] = (landing or {}).get("event_time", {})
    return found


def asked_payloads(ask: Ask) -> dict[str, Any]:
    """What values and keys are decoded as, in plain JSON values."""
    said = ask.landing.to_json()
    return {what: said[what] for what in ("value", "key")}


def new_landing(ask: Ask) -> NewLanding:
    """What is asked, as the journal keeps it."""
    from airflow_provider_streams.journal.landings import NewLanding  # noqa: PLC0415 - SQL when used

    landing = {**ask.landing.to_json(), **({"event_time": dict(ask.event_time)} if ask.event_time else {})}
    return NewLanding(landing, None if ask.grid is None else str(ask.grid), _lasting(ask.basis))


def new_like(kept: KeptLanding, ask: Ask) -> NewLanding:
    """As `new_landing`, on the grid and basis of before."""
    from airflow_provider_streams.journal.landings import NewLanding  # noqa: PLC0415 - SQL when used

    new = new_landing(ask)
    return NewLanding(new.landing, kept.grid or new.grid, kept.basis or new.basis)


def _lasting(basis: str) -> str | None:
    return None if basis == "cuts" else basis


def _told(basis: str, event_time: Mapping[str, str]) -> str:
    return " ".join([repr(basis), *(f"{name}={value!r}" for name, value in event_time.items())])


def _shown(value: object) -> str:
    if value is None:
        return "none"
    if isinstance(value, dict):
        arguments = ", ".join(f"{name}={text!r}" for name, text in value.items() if name != "format")
        return f"{value['format']} {arguments}".rstrip()
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)
