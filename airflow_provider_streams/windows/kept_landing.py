"""What a reader's landing says of the next read, where that says nothing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from airflow_provider_streams.model.basis import Basis, BasisLike
from airflow_provider_streams.model.grid import Grid, parse_grid
from airflow_provider_streams.model.landing import Landing
from airflow_provider_streams.model.payload import payload_from
from airflow_provider_streams.systems.registry import declaration_of
from airflow_provider_streams.windows.ask import kept_event_time

if TYPE_CHECKING:
    from airflow_provider_streams.journal.store import Journal
    from airflow_provider_streams.model.source import Source


def kept_landing(journal: Journal, source_key: str, reader: str) -> Landing | None:
    """What a reader lands, so that it can be asked for again; None: nothing yet, or nowhere."""
    from airflow_provider_streams.spark.sinks import sink_from_json  # noqa: PLC0415 - where a table is

    kept = journal.landing(source_key, reader)
    if kept is None or kept.landing is None or kept.landing["sink"] is None:
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


def basis_of(
    journal: Journal, source: Source, reader: str, given: BasisLike | None, refined: Mapping[str, Any]
) -> Basis:
    """How times become cuts for a reader: as is asked now; what that leaves open, as its windows that stand were asked.

    Args:
        journal: knows the reader's landing and plans.
        source: what it reads.
        reader: whose windows.
        given: a basis, which leaves nothing open; or its name; None: the reader's own, or its system's.
        refined: what is said of it beside its name.

    Raises:
        InvalidRequest: not a basis of this system, or what is said of it belongs to another.
    """
    declared = declaration_of(source.system)
    if isinstance(given, Basis):
        return declared.basis(given, refined)
    kept = journal.landing(source.key, reader)
    own = kept.basis if kept is not None else None
    name: Any = given or own or declared.basis().name
    said = kept_event_time(kept) if name == own else {}
    # the landing does not tell slack, lateness and skew: they may change between two windows
    last = journal.last_terms(source.key, reader, name)
    return declared.basis(name, {**(last.lengths if last else {}), **said, **refined})


def grid_of(journal: Journal, source_key: str, reader: str) -> Grid | None:
    """How a reader's windows tile time; None: not known."""
    kept = journal.landing(source_key, reader)
    return None if kept is None or kept.grid is None else parse_grid(kept.grid)
