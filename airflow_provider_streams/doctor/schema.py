"""How a source's values would land: as columns, or as bytes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from airflow_provider_streams.doctor.finding import Finding, Notes
from airflow_provider_streams.doctor.setup import Setup
from airflow_provider_streams.errors import InvalidRequest, InvalidSchema, WindowNotReady, as_clause
from airflow_provider_streams.errors.plurals import counted
from airflow_provider_streams.hooks.base import StreamHook
from airflow_provider_streams.model.schema.types import StructOf, Type, columns
from airflow_provider_streams.systems.registry import declaration_of
from airflow_provider_streams.systems.schemas import SchemaKeeper, SchemaVersion, Versions
from airflow_provider_streams.systems.source_json import payloads_of
from airflow_provider_streams.systems.system_pool import SystemPool
from airflow_provider_streams.windows.plan.payload_decoding import plan_of_nothing

if TYPE_CHECKING:
    from airflow_provider_streams.model.plan.plan import Plan
    from airflow_provider_streams.windows.tail.event import Event

_PLAIN: Final = "BYTES"
_SHOWN: Final = 12
_SAMPLE: Final = 20
"""How many of the last events are decoded."""
_SAMPLE_BYTES: Final = 16 * 1024 * 1024
_LATER: Final = "Run doctor again later; if clocks differ, see the area clock"
_REPAIR: Final = (
    "Correct value and its schema, or see what the topic has: `airflow streams schema show`. value='bytes' lands any"
)


def check_schema(setup: Setup, hook: StreamHook) -> list[Finding]:
    """The columns of a read with the source's `value`; without one, what the system knows of the payloads."""
    notes = Notes("schema")
    assert setup.source is not None  # noqa: S101 - the area is skipped without one
    with closing(hook.system()) as system:
        if payloads_of(setup.source).get("value") is not None:
            with notes.failing("columns", _REPAIR):
                notes.ok("columns", _decoded(planned(setup, system)))
            _sample(notes, setup, hook)
        elif isinstance(system, SchemaKeeper):
            _judge_known(notes, hook, setup)
        else:
            notes.skipped("columns", f"{setup.system} keeps no schemas: values land as bytes")
    return notes.findings


def _sample(notes: Notes, setup: Setup, hook: StreamHook) -> None:
    """Decode the last events as a reader would: a schema that fits no event shows only there."""
    if notes.failed("columns"):
        notes.skipped("events", "no columns can be made of the values")
        return
    from airflow_provider_streams.windows.tail.tail import Tail  # noqa: PLC0415 - Arrow when used

    assert setup.source is not None  # noqa: S101 - as above
    with notes.failing("events", "Let this user read the source"), closing(SystemPool(hook.system)) as systems:
        try:
            seen = Tail(systems, setup.source, most_bytes=_SAMPLE_BYTES).last(_SAMPLE)
        except WindowNotReady as error:
            notes.skipped("events", f"the last ones cannot be read yet: {as_clause(error.reason)}", _LATER)
            return
        judge_events(notes, seen.events, seen.unreadable)


def judge_events(notes: Notes, events: Sequence[Event], unreadable: Sequence[str] = ()) -> None:
    """Whether the last events could be read and decoded. Pure.

    Args:
        notes: gets the finding.
        events: the last events that could be read.
        unreadable: what is said of stored events that cannot be read.
    """
    causes = [one.cause for one in events]
    bad = [cause for cause in causes if cause]
    if unreadable:
        advice = "Read with the keys or settings that the message names, or choose a source whose events can be read"
        notes.error("events", "; ".join(unreadable), advice)
    elif not causes:
        notes.skipped("events", "no event was found that could be decoded")
    elif all(_is_empty(one) for one in events):
        notes.warning(
            "events",
            f"of the last {counted(len(causes), 'event')}, none has any of these columns: all are null",
            _REPAIR,
        )
    elif not bad:
        notes.ok("events", f"the last {counted(len(causes), 'event')} could be decoded")
    else:
        says = f"{len(bad)} of the last {counted(len(causes), 'event')} cannot be decoded: {bad[-1]}"
        advice = f"{_REPAIR}; on_decode_error='quarantine' (or drop) lands the others"
        (notes.error if len(bad) == len(causes) else notes.warning)("events", says, advice)


def _is_empty(event: Event) -> bool:
    """Whether a value was decoded, and all of its columns are null."""
    return isinstance(event.value, Mapping) and not any(one is not None for one in event.value.values())


def planned(setup: Setup, system: object) -> Plan:
    """A plan of no events, which says how payloads become columns."""
    cell = setup.window_schedule.cell(datetime.now(UTC))
    return plan_of_nothing(system, setup.source, setup.reader or "doctor", cell)  # type: ignore[arg-type]


def _decoded(plan: Plan) -> str:
    decoding = plan.decoding
    if decoding is None:
        return "values land as bytes, as the source says"
    declaration_of(plan.source.system).check_fields(decoding)
    return f"values land as {_names(decoding.value)}"


def _judge_known(notes: Notes, hook: StreamHook, setup: Setup) -> None:
    assert setup.source is not None  # noqa: S101 - as above
    with notes.failing("columns", "Let this user read the source's schemas"):
        try:
            found = hook.schemas(setup.source)
        except InvalidRequest as error:
            notes.ok("columns", f"values land as bytes, as the source says nothing else ({as_clause(error)})")
            return
        judge_versions(notes, found)


def judge_versions(notes: Notes, found: Versions) -> None:
    """What becomes of values whose schemas the system knows, while the source does not say how they are read. Pure."""
    newest = {name: versions[-1] for name, versions in found.items() if versions}
    typed = {name: one for name, one in newest.items() if one.kind != _PLAIN}
    if not typed:
        notes.ok("columns", "the system has no schema of the values: they land as bytes")
        return
    shown = "; ".join(_shown(typed))
    notes.warning(
        "columns",
        f"values land as bytes, although their schema is known: {shown}",
        "Set value='auto' for columns, or value='bytes' to say that bytes are meant",
    )


def _shown(typed: dict[str, SchemaVersion]) -> Iterator[str]:
    for name, one in typed.items():
        yield f"{name} version {one.version} ({one.kind}): {_types_of(one)}"


def _types_of(version: SchemaVersion) -> str:
    try:
        return _names(version.row_type)
    except InvalidSchema as error:
        return f"no columns can be made of it ({as_clause(error.reason)})"


def _names(type_: Type) -> str:
    if not isinstance(type_, StructOf):
        return f"one column of type {type_}"
    found = [f"{one.name} {one.type}" for one in columns(type_)]
    more = f", and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
    return f"{', '.join(found[:_SHOWN])}{more}"
