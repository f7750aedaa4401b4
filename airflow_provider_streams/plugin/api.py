"""The routes below `/streams`. Every one that gives data asks Airflow's auth manager; the page's script is public."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from http import HTTPStatus
from pathlib import Path
from typing import Annotated, Any, Final

from airflow.api_fastapi.core_api.security import requires_access_dag
from fastapi import APIRouter, Depends, FastAPI, HTTPException, Request, Response
from sqlalchemy import Connection
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

from airflow_provider_streams.errors import InvalidWindow, PlanMismatch
from airflow_provider_streams.journal import history, names, pins, runs
from airflow_provider_streams.journal.overview import ReaderOverview, last_basis, overviews, rhythm
from airflow_provider_streams.model.backfill import Select
from airflow_provider_streams.model.coverage import Coverage
from airflow_provider_streams.model.window import Window
from airflow_provider_streams.plugin.access import Access, AccessDep
from airflow_provider_streams.plugin.door import JournalDoor
from airflow_provider_streams.plugin.horizon import Horizons, ask_system
from airflow_provider_streams.plugin.preview import SourceName, backfill_command, preview
from airflow_provider_streams.plugin.timeline import columns, coverage_of, next_due
from airflow_provider_streams.systems.sources import source_from_json

NEIGHBOURHOOD: Final = timedelta(days=7)
STATIC: Final = Path(__file__).parent / "static"

door = JournalDoor()
horizons = Horizons(ask_system)

routes = APIRouter(prefix="/api", dependencies=[Depends(requires_access_dag("GET"))])


def journal() -> Iterator[Connection]:
    """A reading transaction for one request."""
    with door.reading() as connection:
        yield connection


def span_of(start: datetime, end: datetime) -> Window:
    """The span a request names.

    Raises:
        HTTPException: 422, what is wrong with it.
    """
    try:
        return Window(start, end)
    except InvalidWindow as error:
        raise HTTPException(HTTPStatus.UNPROCESSABLE_ENTITY, str(error)) from None


def reader_of(reader_id: int, access: AccessDep, connection: JournalDep) -> ReaderOverview:
    """The reader a request names.

    Raises:
        HTTPException: 404; also if the user may not read any of its DAGs.
    """
    found = access.visible(overviews(connection, reader_id))
    if not found:
        raise HTTPException(HTTPStatus.NOT_FOUND, "No such reader, or none of its DAGs is yours to read.")
    return found[0]


JournalDep = Annotated[Connection, Depends(journal)]
SpanDep = Annotated[Window, Depends(span_of)]
ReaderDep = Annotated[ReaderOverview, Depends(reader_of)]


@routes.get("/sources")
def sources(request: Request, access: AccessDep, connection: JournalDep) -> Response:
    """Every reader the user may see, with what has happened; `version` changes whenever its windows do."""
    found = access.visible(overviews(connection))
    return _unless_known(request, {"sources": [_source(one) for one in found]})


@routes.get("/timeline/{reader_id}")  # noqa: FAST003 - reader_of takes it
def timeline(request: Request, one: ReaderDep, span: SpanDep, access: AccessDep, connection: JournalDep) -> Response:
    """The windows of a reader in a span, as columns; the windows of other people's DAGs are left out."""
    seen, beat = _coverage(connection, one, span, access)
    body = {
        "version": _version(one),
        "due": next_due(beat, datetime.now(UTC)),
        "window_seconds": beat.length.total_seconds() if beat else None,
        **columns(seen),
    }
    return _unless_known(request, body)


@routes.get("/window/{reader_id}")  # noqa: FAST003 - reader_of takes it
def window(one: ReaderDep, span: SpanDep, access: AccessDep, connection: JournalDep) -> dict[str, Any]:
    """Everything about one window: its plan, and every run with its receipt or error."""
    tries = runs.of_window(connection, one.id, span)
    readable = access.readable({run.ref.dag_id for run in tries})
    if tries and not readable:
        raise HTTPException(HTTPStatus.NOT_FOUND, "None of the DAGs that read this window is yours to read.")
    return {
        **span.to_json(),
        "plan": _plan(connection, one.id, span),
        "runs": [_run(run) for run in reversed(tries) if run.ref.dag_id in readable],
    }


@routes.get("/preview/{reader_id}")  # noqa: FAST003 - reader_of takes it
def backfill_preview(
    one: ReaderDep,
    span: SpanDep,
    access: AccessDep,
    connection: JournalDep,
    select: Select = "missing",
) -> dict[str, Any]:
    """What a backfill of the span would read, and its command; reads and changes nothing."""
    # covered neighbours tell how much the windows of a blank stretch may hold
    around = Window(span.start - NEIGHBOURHOOD, span.end + NEIGHBOURHOOD)
    seen, beat = _coverage(connection, one, around, access)
    made = preview(seen, span, select, horizons.known(one.source_key))
    length = beat.length if beat else span.length
    return {
        **span.to_json(),
        **made.to_json(),
        "command": _command(connection, one, span, length, select),
    }


@routes.get("/horizon/{reader_id}")  # noqa: FAST003 - reader_of takes it
async def horizon(one: ReaderDep) -> dict[str, Any]:
    """The oldest time the reader's stream can still serve, waited for a short while only."""
    answer = await horizons.get(one.source_key)
    moment = answer.moment.timestamp() if answer.moment else None
    return {"horizon": moment, "problem": answer.problem, "pending": answer.pending}


class Script(StaticFiles):
    """The page's own files: asked again each time, so that an upgrade is seen at once."""

    async def get_response(self, path: str, scope: Scope) -> Response:
        """As its parent; the browser keeps files, but asks whether they are still current."""
        response = await super().get_response(path, scope)
        response.headers["Cache-Control"] = "no-cache"
        return response


app = FastAPI(title="Streams", docs_url=None, redoc_url=None, openapi_url=None)
app.include_router(routes)
app.mount("/static", Script(directory=STATIC))


def _coverage(
    connection: Connection, one: ReaderOverview, span: Window, access: Access
) -> tuple[Coverage, Window | None]:
    """What the user may see of a span, and the reader's rhythm."""
    known = list(history.window_states(connection, one.id, span))
    beat = rhythm(connection, one.id)
    seen = coverage_of(known, span, beat, one.first_start, datetime.now(UTC))
    # left out last: a window of somebody else's DAG is not missing
    readable = access.readable({item.run.dag_id for item in known if item.run})
    mine = tuple(item for item in seen.windows if item.run is None or item.run.dag_id in readable)
    return Coverage(span, mine), beat


def _command(
    connection: Connection, one: ReaderOverview, span: Window, length: timedelta, select: Select
) -> str | None:
    written = names.written_source(connection, one.source_key)
    if written is None:
        return None
    source = source_from_json(json.loads(written))
    return backfill_command(source, one.reader, span, length, select, basis=last_basis(connection, one.id))


def _source(one: ReaderOverview) -> dict[str, Any]:
    name = SourceName.of(one.source_key)
    return {
        "id": one.id,
        "system": name.system,
        "conn_id": name.conn_id,
        "title": name.title,
        "key": one.source_key,
        "reader": one.reader,
        "dags": list(one.by_dag),
        "first": _seconds(one.first_start),
        "last": _seconds(one.last_end),
        "covered_end": _seconds(one.covered_end),
        "running": one.running,
        "runs": sum(activity.runs for activity in one.by_dag.values()),
        "version": _version(one),
    }


def _version(one: ReaderOverview) -> str:
    """Another one whenever a run starts or ends or a plan is pinned: runs are only ever added and finished."""
    runs_ = [
        (name, each.last_run, each.running, str(each.last_finished), each.late_rows)
        for name, each in one.by_dag.items()
    ]
    return _digest([one.id, one.last_pin, runs_])


def _plan(connection: Connection, reader_id: int, window: Window) -> dict[str, Any] | None:
    pin = pins.newest(connection, reader_id, window)
    if pin is None:
        return None
    try:
        plan = pin.plan
    except PlanMismatch as error:
        return {"fingerprint": pin.fingerprint, "generation": pin.generation, "problem": str(error)}
    return {
        "fingerprint": plan.fingerprint,
        "generation": pin.generation,
        "basis": plan.basis,
        "observed_at": plan.observed_at.timestamp(),
        "shards": len({one.shard for one in plan.ranges}),
        "splits": len(plan.splits),
        "bytes": plan.estimate.bytes,
        "events": plan.estimate.events,
        "losses": len(plan.losses),
    }


def _run(run: runs.Run) -> dict[str, Any]:
    return {
        **run.ref.to_json(),
        "state": run.state,
        "generation": run.generation,
        "rows": run.rows,
        "bytes": run.bytes,
        "error_type": run.error_type,
        "error_message": run.error_message,
        "totals": run.receipt.totals if run.receipt else None,
        "verdict": run.receipt.verdict if run.receipt else None,
        "seconds": run.receipt.seconds if run.receipt else None,
    }


def _unless_known(request: Request, body: dict[str, Any]) -> Response:
    """The body, or 304 if the browser has it; each user's answer is the user's own."""
    content = json.dumps(body, separators=(",", ":"))
    tag = f'W/"{_digest(content)}"'
    headers = {"ETag": tag, "Cache-Control": "private, no-cache", "Vary": "Cookie, Authorization"}
    if request.headers.get("If-None-Match") == tag:
        return Response(status_code=HTTPStatus.NOT_MODIFIED, headers=headers)
    return Response(content, media_type="application/json", headers=headers)


def _digest(value: object) -> str:
    return hashlib.sha256(json.dumps(value).encode()).hexdigest()[:16]


def _seconds(moment: datetime | None) -> float | None:
    return moment.timestamp() if moment else None
