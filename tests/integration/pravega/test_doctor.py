"""What doctor says of a real Pravega with accounts: each fault is named before a reader meets it."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import pytest

from airflow_provider_streams.doctor import clock, examination
from airflow_provider_streams.doctor.examination import examine
from airflow_provider_streams.doctor.setup import Setup
from airflow_provider_streams.errors import NotAuthorized
from airflow_provider_streams.systems.pravega.client.controller import hold_calls, stream_calls
from airflow_provider_streams.systems.pravega.client.controller.hold_calls import Group
from airflow_provider_streams.systems.pravega.client.stream_configuration import Retention, RetentionKind, Settings
from airflow_provider_streams.systems.pravega.source import PravegaSource
from airflow_provider_streams.systems.pravega.system import PravegaSystem
from stream_servers.pravega import ADMIN
from tests.integration.pravega.conftest import HOLDERS

pytestmark = pytest.mark.pravega


@pytest.fixture(autouse=True)
def without_spark(monkeypatch):
    """No JVM starts for what is asked of a server."""
    monkeypatch.setattr(examination, "check_spark", lambda *_: [])


@pytest.fixture(scope="module")
def secured(pravega_auth_server):
    system = system_of(pravega_auth_server, ADMIN)
    system.client.call(stream_calls.create_scope("s"))
    for stream in ("s/t", "s/short"):
        system.client.call(stream_calls.create_stream(stream))
    short = Settings(retention=Retention(RetentionKind.TIME, 60_000, 60_000))
    system.client.call(stream_calls.update_stream("s/short", short))
    system.close()
    return pravega_auth_server


def system_of(server, user):
    given = {"controller": server.controller_uri, "username": user, "password": server.password(user)}
    return PravegaSystem.from_options(given)


@pytest.fixture
def examined(secured, monkeypatch):
    """The findings by area and check, as a user."""

    def run(user, password=None, *, stream="s/t", **extra):
        given = {"controller": secured.controller_uri, "rest_url": secured.rest_url, **extra}
        secret = secured.password(user) if password is None else password
        connection = {"conn_type": "pravega", "login": user, "password": secret, "extra": given}
        monkeypatch.setenv("AIRFLOW_CONN_PRAVEGA_DOCTOR", json.dumps(connection))
        source = PravegaSource(stream, conn_id="pravega_doctor")
        report = examine(Setup("pravega", "pravega_doctor", source))
        assert secret not in json.dumps(report.to_json())
        return {f"{one.area}: {one.check}": one for one in report.findings}

    return run


def problems(found):
    asked = ("connection", "grants", "clock", "retention", "schema")
    return {name: one.level for name, one in found.items() if one.level in ("warning", "error") and one.area in asked}


def test_a_set_up_that_works_is_ok_and_nothing_is_left(secured, examined):
    found = examined(ADMIN)
    assert problems(found) == {}
    for check in ("plan", "read"):
        assert found[f"grants: {check}"].says.startswith("granted: ")
    assert found["connection: segment store: sign-in"].level == "ok"
    assert found["clock: difference"].level == "ok"
    system = system_of(secured, ADMIN)
    assert system.client.call(hold_calls.list_holds("s/t")) == ()
    system.close()


def test_a_reader_may_plan_and_read_but_not_hold(examined):
    found = examined("reader")
    assert (found["grants: plan"].level, found["grants: read"].level) == ("ok", "ok")
    assert found["grants: hold"].level == "warning"
    assert "READ_UPDATE" in found["grants: hold"].next_step


@pytest.mark.slow
def test_what_cannot_be_seen_of_a_hold_is_not_called_ok(secured, examined):
    """Users who may update the stream may or may not make a reader group: only placing a hold tells."""
    places = {}
    for user in HOLDERS:
        assert examined(user)["grants: hold"].level == "skipped"
        system = system_of(secured, user)
        try:
            made = system.client.call(hold_calls.create_hold(Group("s", f"streams-test-{user}"), {0: 0}, "s/t"))
        except NotAuthorized:
            places[user] = False
        else:
            places[user] = True
            system.client.call(hold_calls.delete_hold(made))
        finally:
            system.close()
    assert not places["writer"]


def test_a_user_without_a_grant_is_named(examined):
    found = examined("stranger")
    assert found["connection: controller: sign-in"].level == "ok"
    assert found["grants: plan"].level == "error"
    assert "READ on the stream" in found["grants: plan"].next_step


def test_a_wrong_password_is_named(examined):
    found = examined("reader", "wrong-4711")
    assert found["connection: controller: sign-in"].level == "error"
    assert "credentials" in found["connection: controller: sign-in"].next_step
    assert found["grants: grants"].level == "skipped"


def test_a_port_where_nothing_listens_is_named(examined):
    found = examined("reader", controller="tcp://127.0.0.1:1")
    assert found["connection: controller: TCP"].level == "error"
    assert found["connection: segment store"].level == "skipped"


def test_retention_that_is_too_short_is_an_error(examined):
    assert problems(examined(ADMIN, stream="s/short")) == {
        "retention: schedule": "error",
        "retention: outage": "warning",
    }


def test_a_clock_five_minutes_off_is_named(examined, monkeypatch):
    monkeypatch.setattr(clock, "now", lambda: datetime.now(UTC) + timedelta(minutes=5))
    assert examined(ADMIN)["clock: difference"].level == "error"


def test_a_stream_that_does_not_exist_is_named(examined):
    assert examined(ADMIN, stream="s/typo")["grants: source"].level == "error"
