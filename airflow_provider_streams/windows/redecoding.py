"""How payloads become columns as the system tells it now; and plans that were pinned when they became others."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import TYPE_CHECKING

from airflow_provider_streams.model.cut import Cut
from airflow_provider_streams.model.decoding import ANY_VERSION, Decoding
from airflow_provider_streams.model.payload import Auto, Registry
from airflow_provider_streams.model.plan import Plan, PlanRequest
from airflow_provider_streams.model.row_type import StructOf
from airflow_provider_streams.model.source import Source
from airflow_provider_streams.model.window import Window
from airflow_provider_streams.systems.sources import payloads_of

if TYPE_CHECKING:
    from airflow_provider_streams.systems.base import StreamSystem

_log = logging.getLogger(__name__)


def decoding_now(system: StreamSystem, source: Source, plan: Plan) -> Decoding | None:
    """How a source's payloads become columns, by what the system tells now: its plan of nothing says so.

    Args:
        system: tells.
        source: with what its values and keys are.
        plan: one of its plans, for a reader and a window.

    Returns:
        None: they stay bytes.

    Raises:
        StreamsError: the system does not tell.
    """
    return (
        plan_of_nothing(system, source, plan.reader, plan.window).decoding
        if any(payloads_of(source).values())
        else None
    )


def plan_of_nothing(system: StreamSystem, source: Source, reader: str, window: Window) -> Plan:
    """A plan that reads nothing, and says how payloads become columns now; pinned nowhere.

    Raises:
        StreamsError: the system does not tell.
    """
    tail: Cut = system.tail(source)
    return system.plan(
        PlanRequest(source, window, reader, basis="cuts", start_cut=tail, end_cut=tail, on_loss="record")
    )


def with_earlier(told: Decoding, pinned: Decoding) -> Decoding:
    """The versions that are told now, and those that were."""
    if told.framing != pinned.framing or not told.framing:
        return told
    kept = {name: versions for name, versions in pinned.schemas.items() if ANY_VERSION not in versions}
    schemas = {
        name: versions if ANY_VERSION in versions else {**kept.get(name, {}), **versions}
        for name, versions in told.schemas.items()
    }
    made = {name: {**pinned.made.get(name, {}), **told.made.get(name, {})} for name in {**pinned.made, **told.made}}
    return replace(told, schemas={**kept, **schemas}, made=made)


def is_told(source: Source) -> bool:
    """Whether the system says what a source's values are, and may say more of them later."""
    return isinstance(payloads_of(source)["value"], Auto | Registry)


def decoded_now(system: StreamSystem, source: Source, pinned: Plan) -> Plan:
    """A pinned plan whose payloads become columns as they do now, at the same positions; not pinned.

    Raises:
        StreamsError: the system does not tell how payloads become columns.
    """
    now, before = decoding_now(system, source, pinned), pinned.decoding
    if now is not None and before is not None:
        now = with_earlier(now, before) if is_told(source) else now
        now = _tried_at_last(now, before.otherwise)
    if now != before:
        _log.info("window %s is decoded as the reader lands it now; it was pinned for another landing", pinned.window)
    return replace(pinned, decoding=now)


def _tried_at_last(now: Decoding, otherwise: Decoding | None) -> Decoding:
    """What a replay tried at last is tried still, if it gives these columns."""
    if otherwise is None or not isinstance(now.value, StructOf) or not isinstance(otherwise.value, StructOf):
        return now
    given = {field.name: field.type for field in otherwise.value.fields}
    is_same = all(given.get(field.name) == field.type for field in now.value.fields)
    return now.or_else(otherwise) if is_same and now.key == otherwise.key else now
