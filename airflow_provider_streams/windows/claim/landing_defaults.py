"""Defaults for what the caller of a read leaves open: what the reader has landed so far."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from airflow_provider_streams.lake.registry import sink_from_json
from airflow_provider_streams.model.schema.payload import Payload, payload_from
from airflow_provider_streams.model.sinks.landing import Landing
from airflow_provider_streams.model.window.basis import Basis, BasisLike
from airflow_provider_streams.model.window.window_schedule import WindowSchedule, parse_schedule
from airflow_provider_streams.systems.registry import declaration_of
from airflow_provider_streams.windows.claim.landing_request import kept_event_time

if TYPE_CHECKING:
    from airflow_provider_streams.journal.store import Journal
    from airflow_provider_streams.model.stream.source import Source


def stored_landing(journal: Journal, source_key: str, reader: str) -> Landing | None:
    """What a reader lands, so that it can be requested again; None: nothing yet, or into no table."""
    kept = journal.landing(source_key, reader)
    if kept is None or kept.landing["sink"] is None:
        return None
    columns = kept.landing["columns"]
    sink = sink_from_json(kept.landing["sink"])
    return Landing(
        sink,
        kept.landing["transform"],
        None if columns is None else tuple(columns),
        payload_from(kept.landing.get("value")),
        payload_from(kept.landing.get("key")),
    )


def stored_payloads(journal: Journal, source_key: str, reader: str) -> dict[str, Payload]:
    """How a reader's values and keys are decoded, by `value` and `key`; what is not decoded is left out."""
    kept = journal.landing(source_key, reader)
    said = kept.landing if kept is not None else {}
    found = {name: payload_from(said.get(name)) for name in ("value", "key")}
    return {name: payload for name, payload in found.items() if payload is not None}


def basis_of(
    journal: Journal, source: Source, reader: str, given: BasisLike | None, refined: Mapping[str, Any]
) -> Basis:
    """How times become cuts for a reader: as requested; what the request leaves open, as for its present windows.

    Args:
        journal: knows the reader's landing and plans.
        source: what it reads.
        reader: whose windows.
        given: a basis, which leaves nothing open; or its name; None: the reader's own, or its system's.
        refined: its other arguments.

    Raises:
        InvalidRequest: not a basis of this system, or an argument of another basis.
    """
    declared = declaration_of(source.system)
    if isinstance(given, Basis):
        return declared.basis(given, refined)
    kept = journal.landing(source.key, reader)
    own = kept.basis if kept is not None else None
    name: Any = given or own or declared.basis().name
    said = kept_event_time(kept) if name == own else {}
    # the landing does not keep slack, lateness and skew: they may change between two windows
    last = journal.last_terms(source.key, reader, name)
    return declared.basis(name, {**(last.lengths if last else {}), **said, **refined})


def schedule_of(journal: Journal, source_key: str, reader: str) -> WindowSchedule | None:
    """How a reader's windows tile time; None: not known."""
    kept = journal.landing(source_key, reader)
    return None if kept is None or kept.window_schedule is None else parse_schedule(kept.window_schedule)
