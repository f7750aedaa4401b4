"""Observes the tails of sources: events that are stored after an observation are then proven, or proven lost.

Planning, waiting and recording observe. A failed observation stops none of them.
"""

from __future__ import annotations

import logging
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from airflow_provider_streams.errors import DataLoss, StreamsError, WindowNotReady
from airflow_provider_streams.model.plan.plan import Plan, PlanRequest
from airflow_provider_streams.model.stream.source import Source
from airflow_provider_streams.model.stream.tail_observation import TailObservation, relevant
from airflow_provider_streams.systems.registry import declaration_of
from airflow_provider_streams.systems.source_json import source_to_json
from airflow_provider_streams.systems.topic_parts import part_of_tail_observation

if TYPE_CHECKING:
    from airflow_provider_streams.journal.store import Journal
    from airflow_provider_streams.systems.base import StreamSystem

_log = logging.getLogger(__name__)


def plan_with_tail_observations(journal: Journal, system: StreamSystem, request: PlanRequest) -> Plan:
    """A plan that uses earlier observations of its source; what planning observes is kept for later plans.

    Raises:
        StreamsError: as `StreamSystem.plan`.
    """
    try:
        plan = system.plan(_with_tail_observations(journal, request))
    except (WindowNotReady, DataLoss):
        observe_tail(journal, system, request.source)
        raise
    if plan.tail_observation is None:
        observe_tail(journal, system, request.source)
    else:
        _note(journal, request.source, plan.tail_observation)
    return plan


def _with_tail_observations(journal: Journal, request: PlanRequest) -> PlanRequest:
    """The request with the observations of its source, of itself or as a part of a whole, and its last plan's names."""
    whole, span = request.whole, (request.seen_before, request.seen_until)
    found = journal.tail_observations_around(request.source.key, *span)
    if whole is not None:
        found += [
            part_of_tail_observation(one, request.source) for one in journal.tail_observations_around(whole.key, *span)
        ]
    seen = relevant(found, request.seen_before)
    is_listed = declaration_of(request.source.system).named_singles(request.source) is None
    named = journal.last_names(request.source.key, request.reader) if is_listed else ()
    return replace(request, first_seen=next(iter(seen), None), seen_later=seen[1:], named_before=named)


def observe_tail(journal: Journal, system: StreamSystem, source: Source, *, again: bool = False) -> None:
    """Observe a source, unless it was observed shortly before, and keep the observation. Failures are logged."""
    try:
        if again or not journal.is_observed_about(source.key, datetime.now(UTC)):
            _note(journal, source, system.observe_tail(source))
    except StreamsError as error:
        _log.info("%s was not observed: %s", source, error)


def _note(journal: Journal, source: Source, seen: TailObservation) -> None:
    journal.store_source(source.key, source_to_json(source))
    journal.note_tail_observation(source.key, seen)
