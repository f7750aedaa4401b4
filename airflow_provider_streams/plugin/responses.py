"""What the routes answer, as plain JSON values. Nothing of a connection but its name is in them."""

from __future__ import annotations

import hashlib
import json
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from datetime import UTC, datetime
from functools import lru_cache
from http import HTTPStatus
from typing import Any, Final, Generic, TypeVar

from fastapi import Request, Response

from airflow_provider_streams.errors import InvalidWindow, PlanMismatch, StreamsError
from airflow_provider_streams.journal.pinned_plans import Pin
from airflow_provider_streams.journal.reader_overview import ReaderOverview
from airflow_provider_streams.journal.runs.run_records import Run
from airflow_provider_streams.model.window.window_schedule import parse_schedule
from airflow_provider_streams.redaction import redact
from airflow_provider_streams.systems.source_json import source_from_json

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")

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
        "window_seconds": _window_seconds(one.landing.window_schedule)
        if one.landing and one.landing.window_schedule
        else None,
    }


def _title(one: ReaderOverview) -> str:
    """For people: without the prefix of all Pulsar names. A source of which only the key is known shows that."""
    if one.source is None:
        return one.source_key
    try:
        return str(source_from_json(one.source)).replace("persistent://", "")
    except StreamsError:
        return one.source_key  # of a system that is not installed here


@lru_cache(maxsize=1000)
def _window_seconds(window_schedule: str) -> float | None:
    """How long a window of a window schedule is, roughly: calendar ones differ."""
    try:
        return parse_schedule(window_schedule).cell(_SOME_DAY).length.total_seconds()
    except InvalidWindow:
        return None


def reader_json(one: ReaderOverview) -> dict[str, Any]:
    """What a reader lands, where and how."""
    kept = one.landing
    landing = kept.landing if kept is not None else {}
    table = landing.get("target")
    return {
        "table": None if table is None else redact(str(table)),
        "transform": landing.get("transform"),
        "columns": landing.get("columns"),
        "schema": None if kept is None or kept.columns is None else [list(column) for column in kept.columns],
        "window_schedule": kept.window_schedule if kept else None,
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
        "remarks": list(plan.remarks),
    }


def run_json(run: Run) -> dict[str, Any]:
    """One try of a window."""
    receipt = run.receipt
    return {
        **run.ref.to_json(),
        "state": run.state,
        "generation": run.generation,
        "rows": run.rows,
        "written": run.written,
        "bytes": run.bytes,
        "error_type": run.error_type,
        "error_message": run.error_message,
        "totals": receipt.totals if receipt else None,
        "verdict": receipt.verdict if receipt else None,
        "seconds": receipt.seconds if receipt else None,
    }


def unless_known(request: Request, key: object, body: Callable[[], dict[str, Any]]) -> Response:
    """The body, or 304 if the browser has the body of the same key; each user has answers of their own."""
    tag = f'W/"{_digest(key)}"'
    headers = {"ETag": tag, "Cache-Control": "private, no-cache", "Vary": "Cookie, Authorization"}
    if request.headers.get("If-None-Match") == tag:
        return Response(status_code=HTTPStatus.NOT_MODIFIED, headers=headers)
    content = json.dumps(body(), separators=(",", ":"))
    return Response(content, media_type="application/json", headers=headers)


class ResponseCache(Generic[K, V]):
    """The latest answers, as many browsers ask the same. Safe to share between threads.

    Args:
        most: so many are kept.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._lock = threading.Lock()
        self._known: OrderedDict[K, V] = OrderedDict()

    def get(self, key: K, find_out: Callable[[], V]) -> V:
        """The answer; found out now if it is not known. Two requests at once may both find it out."""
        with self._lock:
            if key in self._known:
                self._known.move_to_end(key)
                return self._known[key]
        found = find_out()
        with self._lock:
            self._known[key] = found
            while len(self._known) > self._most:
                self._known.popitem(last=False)
        return found


def _digest(value: object) -> str:
    return hashlib.sha256(json.dumps(value).encode()).hexdigest()[:16]


def _seconds(moment: datetime | None) -> float | None:
    return moment.timestamp() if moment else None
