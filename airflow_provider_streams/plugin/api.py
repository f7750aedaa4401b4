"""The routes below `/streams`. Every one that gives data asks Airflow's auth manager; the page's script is public."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from http import HTTPStatus
from pathlib import Path
from typing import Annotated, Any, Final

from airflow.api_fastapi.core_api.security import requires_access_dag
from airflow.api_fastapi.logging.decorators import action_logging
from fastapi import APIRouter, Depends, FastAPI, HTTPException, Query, Request, Response
from pydantic import BaseModel, ConfigDict
from sqlalchemy import Connection
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

from airflow_provider_streams.errors import InvalidWindow
from airflow_provider_streams.journal import pinned_plans, row_ids
from airflow_provider_streams.journal.reader_overview import (
    Activity,
    ReaderOverview,
    activities,
    overviews,
    schedule_of,
)
from airflow_provider_streams.journal.runs import run_records
from airflow_provider_streams.journal.runs.run_records import Run
from airflow_provider_streams.model.stream.hold import Hold
from airflow_provider_streams.model.window.backfill import Select
from airflow_provider_streams.model.window.window import Window
from airflow_provider_streams.plugin.access import AccessDep
from airflow_provider_streams.plugin.backfill_actions import Gap, how_to_fill
from airflow_provider_streams.plugin.backfill_command import of_quarantine
from airflow_provider_streams.plugin.backfill_preview import around, preview
from airflow_provider_streams.plugin.database import JournalTransactions
from airflow_provider_streams.plugin.responses import (
    ResponseCache,
    plan_json,
    reader_json,
    run_json,
    source_json,
    unless_known,
)
from airflow_provider_streams.plugin.retention_horizon import Horizons, ask_system
from airflow_provider_streams.plugin.table_states import table_view
from airflow_provider_streams.plugin.timeline import TimelineRequest, columns, next_due, schedule_json, timeline
from airflow_provider_streams.plugin.window_edges import snap
from airflow_provider_streams.redaction import redact

STATIC: Final = Path(__file__).parent / "static"
MOST_PIXELS: Final = 8_000
PREVIEW_PIXELS: Final = 1_000

log = logging.getLogger(__name__)
door = JournalTransactions()
horizons = Horizons(ask_system)
_done: ResponseCache[tuple[int, int, int | None], dict[str, Activity]] = ResponseCache(10_000)
_drawn: ResponseCache[str, dict[str, Any]] = ResponseCache(200)

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
    found = access.visible(overviews(connection, reader_id, done=_activities))
    if not found:
        raise HTTPException(HTTPStatus.NOT_FOUND, "No such reader, or none of its DAGs is yours to read.")
    return found[0]


def _activities(connection: Connection, one: ReaderOverview) -> dict[str, Activity]:
    landing = one.landing.id if one.landing else None
    return _done.get((one.id, one.version, landing), lambda: activities(connection, one))


def current_time() -> datetime:
    """What a window's end is compared with."""
    return datetime.now(UTC)


JournalDep = Annotated[Connection, Depends(journal)]
NowDep = Annotated[datetime, Depends(current_time)]
SpanDep = Annotated[Window, Depends(span_of)]
ReaderDep = Annotated[ReaderOverview, Depends(reader_of)]
Width = Annotated[int, Query(ge=50, le=MOST_PIXELS)]


@routes.get("/sources")
def sources(request: Request, access: AccessDep, connection: JournalDep) -> Response:
    """Every reader that the user may see, with its history; `version` changes whenever its windows do."""
    found = access.visible(overviews(connection, done=_activities))
    body = {"sources": [source_json(one) for one in found]}
    return unless_known(request, body, lambda: body)


@routes.get("/timeline/{reader_id}")  # noqa: FAST003 - reader_of takes it
def windows(
    request: Request,
    one: ReaderDep,
    span: SpanDep,
    connection: JournalDep,
    *,
    now: NowDep,
    width: Width = PREVIEW_PIXELS,
) -> Response:
    """The windows of a reader in a span as columns, summed up where they are many for so many pixels.

    The windows of other people's DAGs are left out.
    """
    window_schedule = schedule_of(connection, one)
    due = next_due(window_schedule, now)
    # windows become missing as time passes: each cell when it ends; without a window schedule, those planned ahead
    until = due if due is not None else now.timestamp() // 60
    key = [one.id, one.version, sorted(one.by_dag), *span.to_json().values(), width, until]

    def found() -> dict[str, Any]:
        seen = timeline(connection, one, window_schedule, TimelineRequest(span, width, now))
        body = {"version": str(one.version), "due": due, "window_schedule": schedule_json(window_schedule, seen.cells)}
        return {**body, **columns(seen, span)}

    return unless_known(request, key, lambda: _drawn.get(repr(key), found))


@routes.get("/window/{reader_id}")  # noqa: FAST003 - reader_of takes it
def window(one: ReaderDep, span: SpanDep, access: AccessDep, connection: JournalDep) -> dict[str, Any]:
    """Everything about one window: its plan, and every run with its receipt or error."""
    tries = run_records.of_window(connection, one.id, span)
    readable = access.readable({run.ref.dag_id for run in tries})
    if tries and not readable:
        raise HTTPException(HTTPStatus.NOT_FOUND, "None of the DAGs that read this window is yours to read.")
    pin = pinned_plans.newest(connection, one.id, span)
    return {
        **span.to_json(),
        **reader_json(one),
        "plan": None if pin is None else plan_json(pin),
        "look": of_quarantine(one, span) if _keeps_events(tries) else None,
        "runs": [run_json(run) for run in reversed(tries) if run.ref.dag_id in readable],
    }


def _keeps_events(tries: Iterable[Run]) -> bool:
    """Whether the last run that covered a window kept events aside."""
    receipts = [run.receipt for run in tries if run.state == "covered" and run.receipt is not None]
    return bool(receipts and receipts[-1].totals["quarantined"])


@routes.get("/preview/{reader_id}")  # noqa: FAST003 - reader_of takes it
def backfill_preview(
    one: ReaderDep,
    span: SpanDep,
    access: AccessDep,
    connection: JournalDep,
    *,
    now: NowDep,
    select: Select = "missing",
) -> dict[str, Any]:
    """What a backfill of the span, widened to whole windows, would read, and how to start it; changes nothing."""
    window_schedule = schedule_of(connection, one)
    wide = snap(window_schedule, span)
    seen = timeline(connection, one, window_schedule, TimelineRequest(wide, PREVIEW_PIXELS, now, whole=True))
    # covered neighbors show how much the windows of a blank stretch may hold
    nearby = timeline(connection, one, window_schedule, TimelineRequest(around(wide), PREVIEW_PIXELS, now))
    made = preview(seen.pieces, nearby.pieces, select, horizons.known(one.source_key))
    gap = Gap(one, wide, made.pieces, seen.is_exact, select, window_schedule)
    return {**wide.to_json(), **reader_json(one), **made.to_json(), **how_to_fill(connection, gap, access)}


@routes.get("/reader/{reader_id}")  # noqa: FAST003 - reader_of takes it
def reader(one: ReaderDep, access: AccessDep, connection: JournalDep) -> dict[str, Any]:
    """What a reader lands, and whether the user may have it forgotten."""
    # other people's DAGs may also read for it
    (whole,) = overviews(connection, one.id, done=_activities)
    return {**reader_json(one), "may_forget": access.may_edit(whole)}


@routes.get("/table/{reader_id}")  # noqa: FAST003 - reader_of takes it
def table(one: ReaderDep, span: SpanDep, connection: JournalDep) -> dict[str, Any]:
    """The status of the reader's table, and which covered windows of the span are no longer in it."""
    seen = table_view(connection, one, span)
    if seen is None:
        return {"status": None, "cause": "", "gone": []}
    gone = [window.to_json() for window in seen.gone]
    return {"status": seen.status, "cause": redact(seen.cause), "gone": gone}


@routes.get("/horizon/{reader_id}")  # noqa: FAST003 - reader_of takes it
async def horizon(one: ReaderDep) -> dict[str, Any]:
    """The oldest time the reader's stream can still serve and what holds it, waited for a short while only."""
    answer = await horizons.get(one.source_key)
    moment = answer.moment.timestamp() if answer.moment else None
    holds = None if answer.holds is None else [_hold_json(hold) for hold in answer.holds]
    return {"horizon": moment, "problem": answer.problem, "pending": answer.pending, "holds": holds}


def _hold_json(hold: Hold) -> dict[str, Any]:
    since = hold.since or hold.oldest
    return {
        "name": hold.name,
        "reader": hold.reader,
        "since": since.timestamp() if since else None,
        "bytes": hold.bytes,
    }


class ForgetRequest(BaseModel):
    """A reader to forget. Its name must be given, so that no mistyped number deletes another one."""

    model_config = ConfigDict(extra="forbid")

    reader: str
    version: str
    """As the page showed it: the user must first look again at what changed since."""


def same_origin_only(request: Request) -> None:
    """Only a script of this very site can send JSON with the user's cookie.

    Raises:
        HTTPException: 403 or 415: a form or a script of another site.
    """
    if request.headers.get("Sec-Fetch-Site", "same-origin") != "same-origin":
        raise HTTPException(HTTPStatus.FORBIDDEN, "Another site asked for this.")
    if request.headers.get("Content-Type", "").partition(";")[0].strip() != "application/json":
        raise HTTPException(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "Send JSON.")


@routes.post(
    "/forget/{reader_id}",
    dependencies=[Depends(same_origin_only), Depends(action_logging(event="streams_forget_reader"))],
)
def forget(reader_id: int, named: ForgetRequest, access: AccessDep) -> dict[str, Any]:
    """The journal forgets a reader: its windows, plans and runs. Its table and its stream stay as they are.

    Raises:
        HTTPException: 403, a DAG that reads for it is not the user's to edit; 409, it is another one by now.
    """
    with door.writing() as connection:
        whole = overviews(connection, reader_id)
        if not (visible := access.visible(whole)):
            raise HTTPException(HTTPStatus.NOT_FOUND, "No such reader, or none of its DAGs is yours to read.")
        if not access.may_edit(whole[0]):
            raise HTTPException(
                HTTPStatus.FORBIDDEN, "To forget a reader, you must be allowed to edit every DAG that read for it."
            )
        one = visible[0]
        seen = (named.reader, named.version) == (one.reader, str(one.version))
        if not seen or not row_ids.claim(connection, one.id, one.version):
            raise HTTPException(HTTPStatus.CONFLICT, "The reader has changed meanwhile: look at it again.")
        row_ids.forget_reader(connection, one.id)
    log.info("%s forgot reader %r of %s", access.name, one.reader, one.source_key)
    return {"forgotten": one.reader}


class Script(StaticFiles):
    """The page's own files: browsers ask for them each time, so that they see an upgrade at once."""

    async def get_response(self, path: str, scope: Scope) -> Response:
        """As its parent; the browser keeps files, but asks whether they are still current."""
        response = await super().get_response(path, scope)
        response.headers["Cache-Control"] = "no-cache"
        return response


app = FastAPI(title="Streams", docs_url=None, redoc_url=None, openapi_url=None)
app.include_router(routes)
app.mount("/static", Script(directory=STATIC))
