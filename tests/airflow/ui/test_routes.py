"""Who gets what from the page's routes, on a real api-server with an auth manager that has rules for each DAG."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from http import HTTPStatus
from typing import Any

import pytest

from tests.airflow.ui import story
from tests.airflow.ui.server import CANARY, NOW, USERS, ApiServer

pytestmark = [pytest.mark.stack, pytest.mark.timeout(1800)]

SPAN = f"start={(NOW - timedelta(days=31)).isoformat()[:19]}Z&end={NOW.isoformat()[:19]}Z"
ROUTES = {
    "/api/sources": "api/sources",
    "/api/timeline/{reader_id}": "api/timeline/{id}?" + SPAN,
    "/api/window/{reader_id}": "api/window/{id}?" + SPAN,
    "/api/preview/{reader_id}": "api/preview/{id}?" + SPAN,
    "/api/table/{reader_id}": "api/table/{id}?" + SPAN,
    "/api/reader/{reader_id}": "api/reader/{id}",
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

    changing = {route.path for route in routes.routes if route.methods != {"GET"}}
    assert changing == {"/api/forget/{reader_id}"}
    assert {route.path for route in routes.routes} == {*ROUTES, *changing}


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
    assert made["action"] is None
    assert "no DAG any more" in made["hint"]
    assert made["table"] == "file:///lake/factory/sensors"


def test_the_horizon_is_asked_of_one_source_and_a_silent_system_is_no_error(page_server):
    known = sources(page_server, "admin")
    answer = page_server.get(f"api/horizon/{known['factory.read_alarms']['id']}", "admin").json()
    assert answer["problem"] == ""
    assert answer["horizon"] < NOW.timestamp()
    silent = page_server.get(f"api/horizon/{known['fleet.daily']['id']}", "admin").json()
    assert silent == {"horizon": None, "problem": "SystemUnavailable", "pending": False, "holds": None}


def test_who_holds_a_stream_is_told(page_server):
    reader = sources(page_server, "admin")["shop_orders.read"]
    (hold,) = page_server.get(f"api/horizon/{reader['id']}", "admin").json()["holds"]
    assert (hold["name"], hold["reader"], hold["bytes"]) == ("orders-daily", "shop_orders.read", 48_000_000)


def test_a_reader_tells_what_it_lands(page_server):
    reader = sources(page_server, "admin")["shop_orders.read"]
    told = page_server.get(f"api/reader/{reader['id']}", "admin").json()
    assert (told["table"], told["transform"]) == ("file:///lake/shop/orders/events", "shop.orders:flatten")
    assert (told["window_schedule"], told["basis"], told["may_forget"]) == ("1h", "publish", True)
    assert not page_server.get(f"api/reader/{reader['id']}", "shopkeeper").json()["may_forget"], (
        "a viewer edits nothing"
    )


def test_a_table_that_is_not_there_is_told_and_its_windows_with_it(page_server):
    reader = sources(page_server, "admin")["fleet.daily"]
    told = page_server.get(ROUTES["/api/table/{reader_id}"].format(id=reader["id"]), "admin").json()
    assert told["status"] in {"absent", "unseen"}
    assert told["cause"]
    assert bool(told["gone"]) == (told["status"] == "absent")


@pytest.fixture
def passing(page_server):
    """A reader that is no longer needed."""
    chapter = story.Chapter("fake:fake_default:once", "shop_once.read", 3)
    story.write(page_server.journal_url, [chapter], NOW)
    yield sources(page_server, "admin")[chapter.reader]
    story.forget(page_server.journal_url, chapter.reader)


def forget(server: ApiServer, user: str | None, reader: dict[str, Any], **headers: str):
    body = {"reader": reader["reader"], "version": reader["version"]}
    return server.post(f"api/forget/{reader['id']}", user, body, **headers)


def test_a_reader_is_forgotten_by_who_may_edit_its_dags_and_by_nobody_else(page_server, passing):
    assert forget(page_server, None, passing).status_code == HTTPStatus.UNAUTHORIZED
    assert forget(page_server, "stranger", passing).status_code == HTTPStatus.FORBIDDEN
    assert forget(page_server, "newcomer", passing).status_code == HTTPStatus.NOT_FOUND
    assert forget(page_server, "shopkeeper", passing).status_code == HTTPStatus.FORBIDDEN
    assert "shop_once.read" in sources(page_server, "admin")
    assert forget(page_server, "admin", passing).json() == {"forgotten": "shop_once.read"}
    assert "shop_once.read" not in sources(page_server, "admin")
    assert forget(page_server, "admin", passing).status_code == HTTPStatus.NOT_FOUND


def test_only_the_page_itself_can_ask_to_forget_with_a_users_cookie(page_server, passing):
    cookie = {"Cookie": f"_token={page_server.token('admin')}"}
    other_site = forget(page_server, None, passing, **cookie, **{"Sec-Fetch-Site": "cross-site"})
    assert other_site.status_code == HTTPStatus.FORBIDDEN
    # what a form of another site can send
    form = forget(page_server, None, passing, **cookie, **{"Content-Type": "text/plain"})
    assert form.status_code in {HTTPStatus.UNSUPPORTED_MEDIA_TYPE, HTTPStatus.UNPROCESSABLE_ENTITY}
    assert "shop_once.read" in sources(page_server, "admin")


def test_a_reader_that_has_changed_meanwhile_is_not_forgotten(page_server, passing):
    for other in ({"version": "1"}, {"reader": "another"}):
        assert forget(page_server, "admin", {**passing, **other}).status_code == HTTPStatus.CONFLICT
    assert "shop_once.read" in sources(page_server, "admin")


def test_twenty_thousand_windows_are_summed_up_for_the_pixels(page_server):
    minutes = 20_000
    chapter = story.Chapter(
        "fake:fake_default:many", "new_many.read", minutes, timedelta(minutes=1), missing=frozenset({9})
    )
    until = NOW.replace(second=0, microsecond=0)
    story.write_plain(page_server.journal_url, chapter, until)
    try:
        reader = sources(page_server, "newcomer")[chapter.reader]
        span = f"start={_iso(until.timestamp() - minutes * 60)}&end={_iso(until.timestamp())}"
        answer = page_server.get(f"api/timeline/{reader['id']}?{span}&width=1000", "newcomer")
        body = answer.json()
        assert sum(body["windows"]) == minutes
        assert len(answer.content) < 100_000
        assert len(body["start"]) <= 1000
        (gap,) = (at for at, state in enumerate(body["state"]) if body["states"][state] == "missing")
        assert body["windows"][gap] == 1
    finally:
        story.forget(page_server.journal_url, chapter.reader)


@pytest.mark.parametrize(
    "query",
    [
        "",
        "start=2026-11-20T10:00Z",
        "start=2026-11-20T10:00&end=2026-11-20T11:00",
        "start=2026-11-20T11:00Z&end=2026-11-20T10:00Z",
        "start=x&end=y",
        "start=nan&end=2026-11-20T10:00Z",
        "start=2026-11-20T10:00Z&end=inf",
        "start=-inf&end=inf",
        "start=1e300&end=1e301",
        "start=0001-01-01T00:00:00%2B14:00&end=2026-11-20T10:00Z",
        "start=2026-11-20T10:00Z&end=9999-12-31T23:59:59-14:00",
        "start=2026-11-20T10:00Z&end=2026-11-20T11:00Z&width=nan&select=no",
    ],
)
@pytest.mark.parametrize("route", ["timeline", "window", "preview"])
def test_a_span_that_is_none_is_refused(page_server, route, query):
    reader = sources(page_server, "admin")["factory.read_alarms"]["id"]
    if "width" in query and route == "window":
        pytest.skip("it has no other question")
    answer = page_server.get(f"api/{route}/{reader}?{query}", "admin")
    assert answer.status_code == HTTPStatus.UNPROCESSABLE_ENTITY, answer.text


@pytest.mark.parametrize("route", ["timeline", "preview"])
@pytest.mark.parametrize("reader", ["factory.read_alarms", "fleet.daily"])
def test_all_of_time_can_be_asked_for(page_server, route, reader):
    one = sources(page_server, "admin")[reader]["id"]
    for span in (
        "start=0001-01-01T00:00:00Z&end=9999-12-31T23:59:59Z",
        "start=0001-01-01T00:00:00Z&end=0001-01-02T00:00:00Z",
        "start=9999-12-30T00:00:00Z&end=9999-12-31T23:59:59.999999Z",
    ):
        answer = page_server.get(f"api/{route}/{one}?{span}", "admin")
        assert answer.status_code == HTTPStatus.OK, answer.text


def test_a_gap_is_filled_by_the_readers_own_dag_by_who_may_start_its_runs(page_server):
    reader = sources(page_server, "admin")["shop_payments.read"]
    path = ROUTES["/api/preview/{reader_id}"].format(id=reader["id"])
    made = page_server.get(path, "admin").json()
    assert "--dag-id shop_payments" in made["command"]
    assert "--source-key pulsar:pulsar_default:persistent://shop/payments/settled" in made["command"]
    action = made["action"]
    assert (made["windows"], action["kind"], action["path"]) == (4, "backfill", "api/v2/backfills")
    # the page's own test may have started two of them
    begun = 2 if page_server.airflow("backfills?dag_id=shop_payments")["backfills"] else 0
    assert (action["runs"] - action["again"], action["left"]) == (4 - begun, begun)
    seen = page_server.get(path, "shopkeeper").json()
    assert seen["action"] is None
    assert "not among your rights" in seen["hint"]


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
