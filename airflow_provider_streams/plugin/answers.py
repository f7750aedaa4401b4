"""What the routes answer, as plain JSON values. Nothing of a connection but its name is in them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from datetime import UTC, datetime
from functools import lru_cache
from http import HTTPStatus
from typing import Any, Final

from fastapi import Request, Response

from airflow_provider_streams.errors import InvalidWindow, PlanMismatch, StreamsError
from airflow_provider_streams.journal.overview import ReaderOverview
from airflow_provider_streams.journal.pins import Pin
from airflow_provider_streams.journal.runs import Run
from airflow_provider_streams.model.grid import parse_grid
from airflow_provider_streams.redaction import redact
from airflow_provider_streams.systems.sources import source_from_json

_SOME_DAY: Final = datetime(2026, 1, 15, 12, tzinfo=UTC)


def source_json(one: ReaderOverview) -> dict[str, Any]:
    """A row of the page."""
    source = one.source or {}
    return {
        "id": one.id,
        "system": source.get("system", ""),
        "conn_id": source.get("conn_id", ""),
        "title": _title(one),
        "key": one.source_key,
        "reader": one.reader,
        "dags": list(one.by_dag),
        "first": _seconds(one.first_start),
        "last": _seconds(one.last_end),
        "covered_end": _seconds(one.covered_end),
        "running": one.running,
        "runs": one.runs,
        "version": str(one.version),
        "window_seconds": _window_seconds(one.landing.grid) if one.landing and one.landing.grid else None,
    }


def _title(one: ReaderOverview) -> str:
    """For people: without what every name of Pulsar's begins with. Of a source that nobody wrote down, its key."""
    if one.source is None:
        return one.source_key
    try:
        return str(source_from_json(one.source)).replace("persistent://", "")
    except StreamsError:
        return one.source_key  # of a system that is not installed here


@lru_cache(maxsize=1000)
def _window_seconds(grid: str) -> float | None:
    """How long a window of a grid is, roughly: calendar ones differ."""
    try:
        return parse_grid(grid).cell(_SOME_DAY).length.total_seconds()
    except InvalidWindow:
        return None


def reader_json(one: ReaderOverview) -> dict[str, Any]:
    """What a reader lands, where and how."""
    kept = one.landing
    landing = (kept.landing if kept is not None else None) or {}
    table = landing.get("target")
    return {
        "table": None if table is None else redact(str(table)),
        "transform": landing.get("transform"),
        "columns": landing.get("columns"),
        "schema": None if kept is None or kept.columns is None else [list(column) for column in kept.columns],
        "grid": kept.grid if kept else None,
        "basis": kept.basis if kept else None,
        "landings": kept.generation if kept else 0,
    }


def plan_json(pin: Pin) -> dict[str, Any]:
    """A pinned plan, in short."""
    try:
        plan = pin.plan
    except PlanMismatch as error:
        return {"fingerprint": pin.fingerprint, "generation": pin.generation, "problem": redact(str(error))}
    return {
        "fingerprint": plan.fingerprint,
        "generation": pin.generation,
        "void": pin.void,
        "basis": plan.basis,
        "observed_at": plan.observed_at.timestamp(),
        "shards": len({one.shard for one in plan.ranges}),
        "splits": len(plan.splits),
        "bytes": plan.estimate.bytes,
        "events": plan.estimate.events,
        "losses": len(plan.losses),
        "unproven": len(plan.unproven),
    }


def run_json(run: Run) -> dict[str, Any]:
    """One try of a window."""
    receipt = run.receipt
    return {
        **run.ref.to_json(),
        "state": run.state,
        "generation": run.generation,
        "rows": run.rows,
        "bytes": run.bytes,
        "error_type": run.error_type,
        "error_message": run.error_message,
        "totals": receipt.totals if receipt else None,
        "verdict": receipt.verdict if receipt else None,
        "seconds": receipt.seconds if receipt else None,
    }


def unless_known(request: Request, key: object, body: Callable[[], dict[str, Any]]) -> Response:
    """The body, or 304 if the browser has that of the same key; each user's answer is the user's own."""
    tag = f'W/"{_digest(key)}"'
    headers = {"ETag": tag, "Cache-Control": "private, no-cache", "Vary": "Cookie, Authorization"}
    if request.headers.get("If-None-Match") == tag:
        return Response(status_code=HTTPStatus.NOT_MODIFIED, headers=headers)
    content = json.dumps(body(), separators=(",", ":"))
    return Response(content, media_type="application/json", headers=headers)


def _digest(value: object) -> str:
    return hashlib.sha256(json.dumps(value).encode()).hexdigest()[:16]


def _seconds(moment: datetime | None) -> float | None:
    return moment.timestamp() if moment else None
