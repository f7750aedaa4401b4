"""Looking at sources, and keeping what was seen: all that is stored after a first look is then proven, or proven lost.

Whoever plans, waits or records looks. A look that fails keeps nobody from what they are at.
"""

from __future__ import annotations

import logging
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from airflow_provider_streams.errors import DataLoss, StreamsError, WindowNotReady
from airflow_provider_streams.model.plan import Plan, PlanRequest
from airflow_provider_streams.model.sighting import Sighting
from airflow_provider_streams.model.source import Source
from airflow_provider_streams.systems.singles import part_of_sighting
from airflow_provider_streams.systems.sources import source_to_json

if TYPE_CHECKING:
    from airflow_provider_streams.journal.store import Journal
    from airflow_provider_streams.systems.base import StreamSystem

_log = logging.getLogger(__name__)


def plan_with_sightings(journal: Journal, system: StreamSystem, request: PlanRequest) -> Plan:
    """A plan that knows what was seen of its source before; what planning sees is kept for later ones.

    Raises:
        StreamsError: as `StreamSystem.plan`.
    """
    try:
        plan = system.plan(replace(request, first_seen=_seen(journal, request)))
    except (WindowNotReady, DataLoss):
        look(journal, system, request.source)
        raise
    if plan.sighting is None:
        look(journal, system, request.source)
    else:
        _note(journal, request.source, plan.sighting)
    return plan


def _seen(journal: Journal, request: PlanRequest) -> Sighting | None:
    """What was seen of the source before the window, of itself or as a part of a whole: the newest; else the first."""
    whole = request.whole
    found = [journal.sighting(request.source.key, request.seen_before)]
    if whole is not None:
        found.append(part_of_sighting(journal.sighting(whole.key, request.seen_before), request.source))
    seen = sorted((one for one in found if one is not None), key=lambda one: one.at)
    earlier = [one for one in seen if one.at <= request.seen_before]
    return next(iter([*reversed(earlier), *seen]), None)


def look(journal: Journal, system: StreamSystem, source: Source, *, again: bool = False) -> None:
    """Look at a source, unless somebody did shortly before, and keep what is seen. Failures are logged.

    Args:
        journal: keeps it.
        system: looks.
        source: at what.
        again: also if somebody did.
    """
    try:
        if again or not journal.is_seen_about(source.key, datetime.now(UTC)):
            _note(journal, source, system.look(source))
    except StreamsError as error:
        _log.info("%s was not looked at: %s", source, error)


def _note(journal: Journal, source: Source, seen: Sighting) -> None:
    journal.introduce(source.key, source_to_json(source))
    journal.note_sighting(source.key, seen)
