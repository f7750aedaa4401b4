"""One examination: every area in order, each after what it needs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from airflow_provider_streams.doctor import stream as streams
from airflow_provider_streams.doctor.airflow import check_airflow
from airflow_provider_streams.doctor.finding import AREAS, Area, Finding, Notes, Report, report_of
from airflow_provider_streams.doctor.journal import check_journal
from airflow_provider_streams.doctor.retention import check_retention
from airflow_provider_streams.doctor.schema import check_schema
from airflow_provider_streams.doctor.setup import Setup
from airflow_provider_streams.doctor.sink import check_sink
from airflow_provider_streams.doctor.spark import check_spark
from airflow_provider_streams.doctor.stream import Stream
from airflow_provider_streams.redaction import redact

Progress = Callable[[Area], None]
"""Called before each area is examined."""
_UNEXPECTED: Final = "A read will probably fail alike. Report this with the message, for doctor should name a cause"
Check = Callable[[], list[Finding]]


def examine(setup: Setup, progress: Progress = lambda _: None) -> Report:
    """All findings. Nothing is created or changed, except one file of the sink's store if the set-up allows it."""
    found: list[Finding] = []
    with streams.opened(setup) as stream:
        checks = _checks(setup, stream, found)
        for area in AREAS:
            progress(area)
            why = _missing(area, setup, found)
            found += _skipped(area, why) if why else _guarded(area, checks[area])
    return report_of(str(setup), found)


def _checks(setup: Setup, stream: Stream, found: Sequence[Finding]) -> Mapping[Area, Check]:
    return {
        "airflow": check_airflow,
        "connection": stream.connection,
        "grants": stream.grants,
        "clock": stream.clock,
        "retention": lambda: check_retention(setup, stream.open_hook()),
        "schema": lambda: check_schema(setup, stream.open_hook()),
        "journal": lambda: check_journal(setup.source, setup.reader),
        "spark": lambda: check_spark(setup.spark_conn_id, setup.spark),
        "sink": lambda: check_sink(setup, None if _missing("schema", setup, found) else stream.open_hook()),
    }


_ASK_THE_STREAM: tuple[Area, ...] = ("grants", "clock", "retention", "schema")
_ASK_ABOUT_A_SOURCE: tuple[Area, ...] = ("grants", "retention", "schema")


def _missing(area: Area, setup: Setup, found: Sequence[Finding]) -> str:
    """Why an area cannot be examined; empty: it can. Pure."""
    if area in _ASK_THE_STREAM:
        failed = [one.check for one in found if one.area == "connection" and one.level == "error"]
        if failed:
            return f"the connection failed at {failed[0]}"
    if area in _ASK_ABOUT_A_SOURCE and setup.source is None:
        return "no topic or stream was named"
    if area in ("retention", "schema"):
        failed = [one.check for one in found if one.area == "grants" and one.level == "error"]
        if failed:
            return f"the grants failed at {failed[0]}"
    return ""


def _skipped(area: Area, why: str) -> list[Finding]:
    notes = Notes(area)
    notes.skipped(area, why)
    return notes.findings


def _guarded(area: Area, check: Check) -> list[Finding]:
    """The findings of an area; an error that none of its checks expects is one as well."""
    notes = Notes(area)
    try:
        with notes.failing(area, "Follow the message"):
            return check()
    except ImportError as error:
        extras = "Install the package with the extras that `pip install` names in the guide Install"
        notes.error(area, f"a module is missing: {error}", extras)
    except Exception as error:  # noqa: BLE001 - a report without the other areas helps less
        notes.error(area, redact(f"{type(error).__name__}: {error}"), _UNEXPECTED)
    return notes.findings
