"""The steps to a service, on sockets of this process."""

from __future__ import annotations

import socket
import ssl
import threading
from datetime import UTC, datetime, timedelta

import pytest

from airflow_provider_streams.doctor import network
from airflow_provider_streams.doctor.connection import accepts, check_services, judge
from airflow_provider_streams.doctor.finding import Notes
from airflow_provider_streams.doctor.network import Probe
from airflow_provider_streams.errors import AuthenticationFailed, NotAuthorized, SystemUnavailable
from airflow_provider_streams.systems.diagnosis import LONGEST_SECONDS, Service, bounded

NOW = datetime(2026, 11, 20, tzinfo=UTC)


class Asked:
    """A system with these services."""

    def __init__(self, *services):
        self._services = services

    def services(self, source):
        assert source is None
        return self._services


def service(addresses, sign_in=lambda: "it accepts us", *, tls=False, **more):
    return Service("broker", "service_url", lambda: addresses, tls, ssl.create_default_context, sign_in, **more)


@pytest.fixture
def listening():
    """The address of a server that answers nothing."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()


@pytest.fixture
def closed():
    """An address where nothing listens."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()


def levels(findings):
    return {one.check: one.level for one in findings}


def test_a_service_that_is_reached_and_accepts_us_is_ok(listening):
    found = check_services(Asked(service([listening])), None)
    assert levels(found) == {
        "broker: DNS": "ok",
        "broker: TCP": "ok",
        "broker: TLS": "skipped",
        "broker: sign-in": "ok",
    }
    assert accepts(found)
    assert accepts(found, "broker")
    assert not accepts(found, "admin")


def test_a_wrong_port_is_named_and_nothing_after_it_is_called_ok(closed):
    found = check_services(Asked(service([closed])), None)
    assert levels(found) == {"broker: DNS": "ok", "broker: TCP": "error", "broker: sign-in": "skipped"}
    assert f"127.0.0.1:{closed[1]}: no connection" in found[1].says
    assert "port in the setting service_url" in found[1].next_step
    assert not accepts(found)


def test_an_unknown_host_is_named():
    found = check_services(Asked(service([("no-such-host.invalid", 1)])), None)
    assert levels(found) == {"broker: DNS": "error", "broker: sign-in": "skipped"}


def test_a_port_without_tls_is_named(listening, monkeypatch):
    monkeypatch.setattr(network, "PROBE_SECONDS", 0.2)
    found = check_services(Asked(service([listening], tls=True)), None)
    assert levels(found)["broker: TLS"] == "error"
    assert levels(found)["broker: sign-in"] == "skipped"


def test_a_server_without_tls_is_not_asked_for_another_authority():
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer() -> None:
            server.accept()[0].close()  # the step before looks whether the port is open
            client, _ = server.accept()
            with client:
                client.recv(1 << 16)
                client.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")

        answering = threading.Thread(target=answer)
        answering.start()
        found = check_services(Asked(service([server.getsockname()], tls=True)), None)
        answering.join()
    (tls,) = (one for one in found if one.check == "broker: TLS")
    assert (tls.level, "does not speak TLS" in tls.says) == ("error", True)
    assert "without TLS" in tls.next_step
    assert "tls_ca_file" not in tls.next_step


@pytest.mark.parametrize(
    ("error", "level", "step"),
    [
        (AuthenticationFailed("broker", "expired"), "error", "valid credentials"),
        (NotAuthorized("broker", "ask"), "warning", "grants"),
        (SystemUnavailable("broker", "silent"), "error", "service_url"),
    ],
)
def test_a_refused_first_request_is_named_with_its_own_next_step(listening, error, level, step):
    def refuse():
        raise error

    *_, last = check_services(Asked(service([listening], refuse)), None)
    assert (last.check, last.level) == ("broker: sign-in", level)
    assert step in last.next_step


def test_a_service_that_is_needed_and_not_named_is_an_error():
    (one,) = check_services(Asked(service([], needed_for="planning windows")), None)
    assert (one.level, one.next_step) == ("error", "Add service_url to the connection's extra")
    (one,) = check_services(Asked(service([])), None)
    assert one.level == "skipped"


def test_a_service_is_not_asked_before_the_one_that_knows_its_address(closed):
    def unknown():
        raise AssertionError("not asked")

    after = Service("store", "x", unknown, False, ssl.create_default_context, str, after="broker")
    found = check_services(Asked(service([closed]), after), None)
    assert (found[-1].check, found[-1].level) == ("store", "skipped")


def test_one_of_several_servers_that_does_not_answer_is_a_warning():
    probes = [Probe(("a", 1), "open", works=True), Probe(("b", 1), "closed", works=False)]
    notes = Notes("connection")
    judge(notes, "broker: TCP", probes, "Check it", NOW)
    assert notes.findings[0].level == "warning"
    assert "b:1: closed" in notes.findings[0].says


def test_a_certificate_that_ends_soon_is_a_warning():
    notes = Notes("connection")
    for days in (3, 300):
        judge(notes, "broker: TLS", [Probe(("a", 1), "TLS", True, NOW + timedelta(days=days))], "", NOW)
    assert [one.level for one in notes.findings] == ["warning", "ok"]


def test_requests_of_an_examination_take_bounded_time():
    assert bounded({})["request_timeout_seconds"] == f"{LONGEST_SECONDS:g}"
    assert bounded({"request_timeout_seconds": "300"})["request_timeout_seconds"] == f"{LONGEST_SECONDS:g}"
    assert bounded({"request_timeout_seconds": "2"})["request_timeout_seconds"] == "2"
