"""What doctor says of a real broker with authorization: each fault is named before a reader meets it."""

from __future__ import annotations

import json
import time
from datetime import UTC, datetime, timedelta

import pytest

from airflow_provider_streams.doctor import clock, examination
from airflow_provider_streams.doctor.examination import examine
from airflow_provider_streams.doctor.setup import Setup
from airflow_provider_streams.model.schema.payload import Json
from airflow_provider_streams.model.window.window_schedule import schedule_of
from airflow_provider_streams.systems.pulsar.source import PulsarSource

pytestmark = pytest.mark.pulsar


@pytest.fixture(autouse=True)
def without_spark(monkeypatch):
    """No JVM starts for what is asked of a server."""
    monkeypatch.setattr(examination, "check_spark", lambda *_: [])


@pytest.fixture
def secured(pulsar_auth_server):
    """A broker with a topic that the role `reader` may consume, and others may not."""
    namespace = f"public/doctor-{time.time_ns():x}"
    pulsar_auth_server.create_namespace(namespace)
    pulsar_auth_server.grant(namespace, "reader", ["consume"])
    yield pulsar_auth_server, pulsar_auth_server.create_topic(f"{namespace}/orders", 2), namespace
    pulsar_auth_server.delete_namespace(namespace)


@pytest.fixture
def examined(secured, monkeypatch):
    """The findings by area and check, as a role; other extras of the connection win."""
    server, topic, _ = secured

    def run(token, *, source=None, schedule="1h", **extra):
        given = {"service_url": server.service_url, "admin_url": server.admin_url, **extra}
        connection = {"conn_type": "pulsar", "password": token, "extra": given}
        monkeypatch.setenv("AIRFLOW_CONN_PULSAR_DOCTOR", json.dumps(connection))
        asked = source or PulsarSource(topic, conn_id="pulsar_doctor")
        report = examine(Setup("pulsar", "pulsar_doctor", asked, window_schedule=schedule_of(schedule)))
        shown = json.dumps(report.to_json())
        assert not token or token not in shown
        return {f"{one.area}: {one.check}": one for one in report.findings}

    return run


def problems(found):
    asked = ("connection", "grants", "clock", "retention", "schema")
    return {name: one.level for name, one in found.items() if one.level in ("warning", "error") and one.area in asked}


def test_a_set_up_that_works_is_ok_and_nothing_is_left_on_the_broker(secured, examined):
    server, _, namespace = secured
    server.set_retention(namespace, minutes=-1, megabytes=-1)
    before = server.inventory()
    found = examined(server.token())
    assert problems(found) == {}
    for check in ("plan", "read", "hold"):
        assert found[f"grants: {check}"].says.startswith("granted: ")
    assert found["clock: difference"].level == "ok"
    assert found["retention: outage"].says.startswith("events are held without limit")
    assert server.inventory() == before


def test_no_retention_is_an_error_for_an_administrator(secured, examined):
    server, _, namespace = secured
    server.set_retention(namespace, minutes=0, megabytes=0)
    found = examined(server.token())
    assert problems(found) == {"retention: schedule": "error", "retention: outage": "warning"}
    assert "before their window is read" in found["retention: schedule"].says


def test_a_reader_may_do_all_it_needs_and_cannot_see_the_retention(secured, examined):
    server, *_ = secured
    found = examined(server.token("reader"))
    assert problems(found) == {"retention: schedule": "warning"}
    assert found["grants: hold"].level == "ok"
    assert "may not read the stream's retention" in found["retention: schedule"].says


def test_a_role_without_a_grant_is_named(secured, examined):
    server, *_ = secured
    found = examined(server.token("stranger"))
    assert found["connection: broker: sign-in"].level == "ok"
    assert found["grants: plan"].level == "error"
    assert "'consume'" in found["grants: plan"].next_step
    assert {found[f"{area}: {area}"].level for area in ("retention", "schema")} == {"skipped"}


@pytest.mark.parametrize("token", ["wrong", ""])
def test_a_wrong_token_is_named_at_broker_and_admin_api(examined, token):
    found = examined(token)
    for service in ("broker", "admin API"):
        assert found[f"connection: {service}: TCP"].level == "ok"
        assert found[f"connection: {service}: sign-in"].level == "error"
        assert "credentials" in found[f"connection: {service}: sign-in"].next_step
    assert found["grants: grants"].level == "skipped"


def test_an_expired_token_is_named_as_such(secured, examined):
    server, *_ = secured
    found = examined(server.token("reader", valid_seconds=-60))
    assert "the token expired at" in found["connection: broker: sign-in"].says


def test_swapped_ports_are_named(secured, examined):
    server, *_ = secured
    url = server.admin_url.replace("http://", "pulsar://")
    found = examined(server.token(), service_url=url, request_timeout_seconds="3")
    assert found["connection: broker: TCP"].level == "ok"
    assert found["connection: broker: sign-in"].level == "error"
    found = examined(server.token(), admin_url=server.service_url.replace("pulsar://", "http://"))
    assert found["connection: admin API: sign-in"].level == "error"


def test_a_port_where_nothing_listens_is_named(secured, examined):
    server, *_ = secured
    found = examined(server.token(), service_url="pulsar://127.0.0.1:1", admin_url="http://127.0.0.1:1")
    assert problems(found) == {"connection: broker: TCP": "error", "connection: admin API: TCP": "error"}


def test_tls_without_trust_is_named(secured, examined):
    server, *_ = secured
    found = examined(server.token(), service_url=server.service_url_tls, admin_url=server.admin_url_tls)
    for service in ("broker", "admin API"):
        assert found[f"connection: {service}: TLS"].level == "error"
        assert "tls_ca_file" in found[f"connection: {service}: TLS"].next_step


def test_tls_with_trust_is_ok(secured, examined):
    server, *_ = secured
    authority = str(server.certificates.authority)
    urls = {"service_url": server.service_url_tls, "admin_url": server.admin_url_tls}
    found = examined(server.token("reader"), **urls, tls_ca_file=authority)
    assert "trusted certificate, valid until" in found["connection: broker: TLS"].says
    assert found["grants: read"].level == "ok"


@pytest.mark.parametrize(("minutes", "level"), [(5, "error"), (-5, "error"), (0, "ok")])
def test_a_clock_five_minutes_off_is_named(secured, examined, monkeypatch, minutes, level):
    server, *_ = secured
    monkeypatch.setattr(clock, "now", lambda: datetime.now(UTC) + timedelta(minutes=minutes))
    assert examined(server.token("reader"))["clock: difference"].level == level


def test_a_topic_that_does_not_exist_is_named_and_not_created(secured, examined):
    server, _, namespace = secured
    source = PulsarSource(f"{namespace}/typo", conn_id="pulsar_doctor")
    found = examined(server.token(), source=source)
    assert found["grants: source"].level == "error"
    assert not any("typo" in name for name in server.topics(namespace))


@pytest.mark.parametrize(("payload", "level"), [(b"no JSON", "error"), (b'{"id": 7}', "ok")])
def test_a_wrong_schema_is_named_by_the_last_events(bench, monkeypatch, payload, level):
    topic = bench.topic()
    bench.write(topic, [payload] * 3)
    extra = {"service_url": bench.server.service_url, "admin_url": bench.server.admin_url}
    monkeypatch.setenv("AIRFLOW_CONN_PULSAR_DOCTOR", json.dumps({"conn_type": "pulsar", "extra": extra}))
    source = PulsarSource(topic, conn_id="pulsar_doctor", value=Json("id long"))
    found = {one.check: one for one in examine(Setup("pulsar", "pulsar_doctor", source)).of("schema")}
    assert found["columns"].says == "values land as id long"
    assert found["events"].level == level
    assert bench.subscriptions(topic) == []
