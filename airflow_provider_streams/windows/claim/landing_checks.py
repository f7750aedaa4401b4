"""Checks before a window is planned: its rows must fit the table, and no covered window may overlap it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow_provider_streams.errors import PlanMismatch, StreamsError, WindowsOverlap
from airflow_provider_streams.windows.claim.overrides import Overrides
from airflow_provider_streams.windows.claim.plan_fits_table import RowRequirements, check_rows
from airflow_provider_streams.windows.plan.payload_decoding import changes_before, decoded_now, plan_of_nothing

if TYPE_CHECKING:
    from airflow_provider_streams.journal.store import Journal
    from airflow_provider_streams.model.plan.plan import Plan
    from airflow_provider_streams.model.window.coverage import Coverage
    from airflow_provider_streams.model.window.window import Window
    from airflow_provider_streams.systems.base import StreamSystem
    from airflow_provider_streams.windows.claim.decision import Decision, TableClaim
    from airflow_provider_streams.windows.claim.landing_request import LandingRequest


def check_first_columns(
    journal: Journal, system: StreamSystem, landing_request: LandingRequest, window: Window
) -> None:
    """Check that the columns of a reader without a landing exist, before its landing is stored.

    Raises:
        InvalidRequest: one does not. The reader stays unknown, so the next read may name others.
    """
    from airflow_provider_streams.spark.datasource.split_reading import schema_of  # noqa: PLC0415 - Arrow

    if (
        landing_request.landing.columns is None
        or journal.landing(landing_request.source.key, landing_request.reader) is not None
    ):
        return
    try:
        before = changes_before(journal, landing_request.source, landing_request.reader)
        plan = plan_of_nothing(system, landing_request.source, landing_request.reader, window, before)
    except StreamsError:
        return  # the system does not answer: planning says why
    schema_of(system, plan, landing_request.landing.columns)


def row_requirements(
    landing_request: LandingRequest, claim: TableClaim | Decision, overrides: Overrides
) -> RowRequirements:
    """What rows must have to land. Under a landing that has not begun, any rows fit."""
    is_tied = "event_time" in (landing_request.event_time or {})  # see `decoded_as_requested`
    return RowRequirements(
        landing_request.landing,
        claim.columns,
        overrides.full_refresh,
        source=landing_request.source,
        may_replan=not is_tied,
    )


def check_landable(
    journal: Journal, system: StreamSystem, landing_request: LandingRequest, claim_preview: Decision, plan: Plan
) -> None:
    """Check that a job could land a plan's rows, as far as plan and table tell. Nothing is changed.

    Raises:
        InvalidRequest, SinkError: it could not.
        StreamsError: the system does not tell how payloads become columns.
    """
    key = landing_request.source.key
    if _is_pinned(journal, key, plan):
        if _would_begin(landing_request, claim_preview) or journal.is_of_earlier_landing(key, plan):
            plan = decoded_now(system, landing_request.source, plan)  # as the run that reads it will
        elif not row_requirements(landing_request, claim_preview, Overrides()).is_met(
            system, plan, journal.later_columns(key, plan)
        ):
            return  # the job fails this window alone
    check_rows(system, plan, landing_request.landing, claim_preview.terms)


def _is_pinned(journal: Journal, source_key: str, plan: Plan) -> bool:
    try:
        return plan == journal.pinned(source_key, plan.reader, plan.window)
    except PlanMismatch:
        return False  # the pinned plan cannot be read any more, and is made again


def _would_begin(landing_request: LandingRequest, claim_preview: Decision) -> bool:
    """Whether a run would begin a new landing; a reader that only proved so far lands nowhere yet."""
    lands = claim_preview.is_begun and claim_preview.landing is not None and claim_preview.landing.target is not None
    return landing_request.landing.sink is not None and not lands


def refuse_overlaps(landing_request: LandingRequest, window: Window, overrides: Overrides, coverage: Coverage) -> None:
    """Check before a window is planned that no covered one shares time with it; a run's start checks again.

    Raises:
        WindowsOverlap: some do, and must stay.
    """
    if overrides.overlap == "replace" or landing_request.landing.sink is None:
        return
    known = coverage.select("covered")
    if covered := [item.window for item in known if item.run is not None and item.window != window]:
        raise WindowsOverlap(landing_request.source, window, covered)
