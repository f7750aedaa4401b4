"""Who gets what from the page's routes, on a real api-server with an auth manager that has rules for each DAG."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from http import HTTPStatus
from typing import Any

import pytest

from tests.airflow.ui.server import CANARY, USERS, ApiServer

pytestmark = [pytest.mark.stack, pytest.mark.timeout(420)]

NOW = datetime.now(UTC)
SPAN = f"start={(NOW - timedelta(days=31)).isoformat()[:19]}Z&end={NOW.isoformat()[:19]}Z"
ROUTES = {
    "/api/sources": "api/sources",
    "/api/timeline/{reader_id}": "api/timeline/{id}?" + SPAN,
    "/api/window/{reader_id}": "api/window/{id}?" + SPAN,
    "/api/preview/{reader_id}": "api/preview/{id}?" + SPAN,
    "/api/horizon/{reader_id}": "api/horizon/{id}",
}
"""Every route that gives data, and a request of it."""


def sources(server: ApiServer, user: str) -> dict[str, dict[str, Any]]:
    """What a user is shown, by reader."""
    return {one["reader"]: one for one in server.get("api/sources", user).json()["sources"]}


def states(server: ApiServer, reader: dict[str, Any], user: str) -> list[str]:
    body = server.get(ROUTES["/api/timeline/{reader_id}"].format(id=reader["id"]), user).json()
    return [body["states"][index] for index in body["state"]]


def test_every_route_is_in_the_matrix():
    from airflow_provider_streams.plugin.api import routes

    assert {route.path for route in routes.routes} == set(ROUTES)
    assert all(route.methods == {"GET"} for route in routes.routes)


@pytest.mark.parametrize("route", ROUTES)
def test_nobody_gets_data_without_rights(page_server, route):
    path = ROUTES[route].format(id=sources(page_server, "admin")["shop_orders.read"]["id"])
    assert page_server.get(path, None).status_code == HTTPStatus.UNAUTHORIZED
    forged = page_server.get(path, None, Authorization="Bearer eyJhbGciOiJIUzI1NiJ9.e30.x")
    assert forged.status_code in {HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN}
    assert page_server.get(path, "stranger").status_code == HTTPStatus.FORBIDDEN
    for answer in (page_server.get(path, None), forged, page_server.get(path, "stranger")):
        assert "shop" not in answer.text
    assert page_server.get(path, "admin").status_code == HTTPStatus.OK


@pytest.mark.parametrize("route", [route for route in ROUTES if "reader_id" in route])
def test_a_reader_of_other_peoples_dags_does_not_exist(page_server, route):
    theirs = sources(page_server, "admin")["web_clicks.read"]["id"]
    answer = page_server.get(ROUTES[route].format(id=theirs), "shopkeeper")
    unknown = page_server.get(ROUTES[route].format(id=99_999), "shopkeeper")
    assert (answer.status_code, answer.text) == (unknown.status_code, unknown.text)
    assert answer.status_code == HTTPStatus.NOT_FOUND


def test_only_readers_of_readable_dags_are_listed(page_server):
    all_dags = {dag for one in sources(page_server, "admin").values() for dag in one["dags"]}
    assert all_dags >= {"shop_orders", "web_clicks", "factory", "warehouse"}
    mine = sources(page_server, "shopkeeper")
    assert {dag for one in mine.values() for dag in one["dags"]} == {
        *("shop_orders", "shop_payments", "shop_stock", "shop_shared")
    }
    assert sources(page_server, "newcomer") == {}


def test_windows_of_other_peoples_dags_are_left_out_and_not_called_missing(page_server):
    both, mine = sources(page_server, "admin")["both"], sources(page_server, "shopkeeper")["both"]
    assert states(page_server, both, "admin") == ["covered"] * 10
    assert states(page_server, mine, "shopkeeper") == ["covered"] * 5
    assert (both["runs"], mine["runs"]) == (10, 5)
    assert both["covered_end"] - mine["covered_end"] == 5 * 3600
    hidden = f"start={_iso(both['covered_end'] - 3600)}&end={_iso(both['covered_end'])}"
    assert page_server.get(f"api/window/{both['id']}?{hidden}", "admin").json()["runs"]
    assert page_server.get(f"api/window/{both['id']}?{hidden}", "shopkeeper").status_code == HTTPStatus.NOT_FOUND


def _iso(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat().replace("+00:00", "Z")


def test_a_timeline_that_has_not_changed_is_not_sent_again(page_server):
    reader = sources(page_server, "admin")["shop_orders.read"]
    for path in ("api/sources", ROUTES["/api/timeline/{reader_id}"].format(id=reader["id"])):
        first = page_server.get(path, "admin")
        again = page_server.get(path, "admin", **{"If-None-Match": first.headers["ETag"]})
        assert (again.status_code, again.content) == (HTTPStatus.NOT_MODIFIED, b"")
        assert "private" in first.headers["Cache-Control"]
    other = page_server.get("api/sources", "shopkeeper", **{"If-None-Match": first.headers["ETag"]})
    assert other.status_code == HTTPStatus.OK


def test_a_window_shows_its_plan_and_its_runs_with_receipts(page_server):
    reader = sources(page_server, "admin")["shop_orders.read"]
    end = reader["covered_end"] - 3600
    answer = page_server.get(f"api/window/{reader['id']}?start={_iso(end - 3600)}&end={_iso(end)}", "admin").json()
    covered, failed = answer["runs"]
    assert (covered["state"], covered["try_number"], covered["verdict"]) == ("covered", 2, "complete")
    assert covered["totals"]["rows"] == covered["rows"] == answer["plan"]["events"]
    assert (failed["state"], failed["error_type"], failed["totals"]) == ("failed", "ReadStalled", None)
    assert covered["run_id"].startswith("scheduled__")
    assert len(answer["plan"]["fingerprint"]) == 32


def test_a_preview_counts_what_would_be_read_and_gives_the_command(page_server):
    reader = sources(page_server, "admin")["factory.read_sensors"]
    made = page_server.get(ROUTES["/api/preview/{reader_id}"].format(id=reader["id"]), "admin").json()
    assert (made["windows"], made["counts"]) == (8, {"failed": 8})
    assert 0 < made["rows"] < 8 * 640_000 * 1.4
    assert made["command"].startswith("airflow streams backfill pravega \\\n  factory/sensors")
    assert made["command"].endswith("--dry-run")


def test_the_horizon_is_asked_of_one_source_and_a_silent_system_is_no_error(page_server):
    known = sources(page_server, "admin")
    answer = page_server.get(f"api/horizon/{known['factory.read_alarms']['id']}", "admin").json()
    assert answer["problem"] == ""
    assert answer["horizon"] < NOW.timestamp()
    silent = page_server.get(f"api/horizon/{known['fleet.daily']['id']}", "admin").json()
    assert silent == {"horizon": None, "problem": "SystemUnavailable", "pending": False}


@pytest.mark.parametrize(
    "query", ["", "start=2026-11-20T10:00Z", "start=2026-11-20T10:00&end=2026-11-20T11:00", "start=x&end=y", "back"]
)
def test_a_span_that_is_none_is_refused(page_server, query):
    reader = sources(page_server, "admin")["factory.read_alarms"]["id"]
    query = "start=2026-11-20T11:00Z&end=2026-11-20T10:00Z" if query == "back" else query
    assert page_server.get(f"api/timeline/{reader}?{query}", "admin").status_code == HTTPStatus.UNPROCESSABLE_ENTITY


def test_the_script_is_public_and_nothing_else_is(page_server):
    script = page_server.get("static/main.js", None)
    assert script.status_code == HTTPStatus.OK
    assert "javascript" in script.headers["Content-Type"]
    for path in ("openapi.json", "docs", "redoc", "static/", "static/../api.py", "api", "static/%2e%2e/api.py"):
        assert page_server.get(path, None).status_code in {HTTPStatus.NOT_FOUND, HTTPStatus.UNAUTHORIZED}, path


def test_no_secret_of_a_connection_is_in_any_answer_or_in_the_log(page_server):
    readers = sources(page_server, "admin").values()
    answers = [page_server.get("static/main.js", None)]
    for user in USERS:
        for route in ROUTES.values():
            answers += [page_server.get(route.format(id=one["id"]), user) for one in list(readers)[:2]]
    assert {answer.status_code for answer in answers} == {HTTPStatus.OK, HTTPStatus.FORBIDDEN, HTTPStatus.NOT_FOUND}
    assert [answer.url for answer in answers if CANARY in answer.text] == []
    assert CANARY not in page_server.log()
