"""How payloads become columns by the system's present schemas, and plans that were pinned under earlier ones."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from airflow_provider_streams.errors import StreamsError
from airflow_provider_streams.model.plan.plan import Plan, PlanRequest
from airflow_provider_streams.model.schema.change_payload import ChangePayload
from airflow_provider_streams.model.schema.change_rows import ChangeFormat
from airflow_provider_streams.model.schema.decoding import ANY_VERSION, Decoding, RecordTypes, WriterSchema
from airflow_provider_streams.model.schema.payload import Auto, Registry
from airflow_provider_streams.model.schema.types import StructOf
from airflow_provider_streams.model.stream.cut import Cut
from airflow_provider_streams.model.stream.source import Source
from airflow_provider_streams.model.window.window import Window
from airflow_provider_streams.systems.schemas import SchemaKeeper
from airflow_provider_streams.systems.source_json import payloads_of

if TYPE_CHECKING:
    from airflow_provider_streams.journal.store import Journal
    from airflow_provider_streams.systems.base import StreamSystem
    from airflow_provider_streams.systems.schemas import Versions

_log = logging.getLogger(__name__)

_PLAIN: Final = "BYTES"
_SHOWN: Final = 3


def decoding_now(system: StreamSystem, source: Source, plan: Plan) -> Decoding | None:
    """How a source's payloads become columns by an empty plan made now; None: they stay bytes.

    Raises:
        StreamsError: the system does not tell.
    """
    return (
        plan_of_nothing(system, source, plan.reader, plan.window, plan.changes).decoding
        if any(payloads_of(source).values())
        else None
    )


def plan_of_nothing(
    system: StreamSystem, source: Source, reader: str, window: Window, changes: ChangeFormat | None = None
) -> Plan:
    """A plan that reads nothing, and says how payloads become columns now; pinned nowhere.

    Args:
        system: tells it.
        source: what is read.
        reader: for whom.
        window: any window.
        changes: how database changes were decoded before, if they were.

    Raises:
        StreamsError: the system does not tell.
    """
    tail: Cut = system.tail(source)
    return system.plan(
        PlanRequest(
            source,
            window,
            reader,
            basis="cuts",
            start_cut=tail,
            end_cut=tail,
            on_loss="record",
            changes_before=changes,
        )
    )


def changes_before(journal: Journal, source: Source, reader: str) -> ChangeFormat | None:
    """How the reader's former window decoded database changes; None: it has none, or they are no changes."""
    is_of_changes = isinstance(payloads_of(source).get("value"), ChangePayload)
    return journal.last_changes(source.key, reader) if is_of_changes else None


def with_earlier(told: Decoding, pinned: Decoding) -> Decoding:
    """The present versions, after those that the system no longer has: the last one names the columns."""
    if told.framing != pinned.framing or not told.framing:
        return told
    types = _all_types(told.types, pinned.types)
    kept = {
        name: {version: one for version, one in versions.items() if types is None or not types.is_other(name, version)}
        for name, versions in pinned.schemas.items()
        if ANY_VERSION not in versions
    }
    schemas = {
        name: versions if ANY_VERSION in versions else {**_without(kept.get(name, {}), versions), **versions}
        for name, versions in told.schemas.items()
    }
    made = {name: {**pinned.made.get(name, {}), **told.made.get(name, {})} for name in {**pinned.made, **told.made}}
    return replace(told, schemas={**kept, **schemas}, made=made, types=types)


def _all_types(told: RecordTypes | None, pinned: RecordTypes | None) -> RecordTypes | None:
    """The present record types, and those of earlier versions."""
    if told is None or pinned is None:
        return told
    known = {type_ for versions in told.of.values() for type_ in versions.values()}
    before = {
        name: {version: type_ for version, type_ in versions.items() if type_ in known}
        for name, versions in pinned.of.items()
    }
    of = {name: {**before.get(name, {}), **told.of.get(name, {})} for name in {**before, **told.of}}
    return replace(told, of=of)


def _without(versions: Mapping[str, WriterSchema], others: Mapping[str, WriterSchema]) -> dict[str, WriterSchema]:
    return {version: schema for version, schema in versions.items() if version not in others}


def has_declared_schema(source: Source) -> bool:
    """Whether the system has the schemas of a source's values, and may get more later."""
    return isinstance(payloads_of(source)["value"], Auto | Registry)


def decoded_now(system: StreamSystem, source: Source, pinned: Plan) -> Plan:
    """A pinned plan with the present decoding, at the same positions; not pinned.

    Raises:
        StreamsError: the system does not tell how payloads become columns.
    """
    now, before = decoding_now(system, source, pinned), pinned.decoding
    if now is not None and before is not None:
        now = with_earlier(now, before) if has_declared_schema(source) else now
        now = _tried_at_last(now, before.otherwise)
    if now != before:
        _log.info("window %s was pinned for another landing, and is decoded as the reader lands it now", pinned.window)
    return replace(pinned, decoding=now)


def _tried_at_last(now: Decoding, otherwise: Decoding | None) -> Decoding:
    """The decoding that a replay tried last is still tried, if it gives the same columns."""
    if otherwise is None or not isinstance(now.value, StructOf) or not isinstance(otherwise.value, StructOf):
        return now
    given = {field.name: field.type for field in otherwise.value.fields}
    is_same = all(given.get(field.name) == field.type for field in now.value.fields)
    return now.or_else(otherwise) if is_same and now.key == otherwise.key else now


def undecoded_note(journal: Journal, system: StreamSystem, source: Source, reader: str) -> str:
    """The schemas that a read would not use, and the argument that does; empty: there are none, or windows are covered.

    It is a remark: a system that does not tell its schemas leaves it out.
    """
    if payloads_of(source).get("value") is not None or not isinstance(system, SchemaKeeper):
        return ""
    if journal.last_covered(source.key, reader) is not None:
        return ""
    try:
        return _words(system.schemas(source))
    except StreamsError as error:
        _log.debug("%s: its schemas are not known: %s", source, error)
        return ""


def log_undecoded(journal: Journal, system: StreamSystem, source: Source, reader: str) -> None:
    """Log the note, if there is one."""
    if note := undecoded_note(journal, system, source, reader):
        _log.warning("%s", note)


def _words(found: Versions) -> str:
    newest = {name: versions[-1] for name, versions in found.items() if versions}
    named = [f"{name} ({one.kind}, version {one.version})" for name, one in newest.items() if one.kind != _PLAIN]
    if not named:
        return ""
    shown = ", ".join(named[:_SHOWN]) + (", .." if len(named) > _SHOWN else "")
    return (
        f"The schema is known of {shown}, but values land as bytes. value='auto' decodes them into columns; "
        "value='bytes' says that bytes are meant."
    )
