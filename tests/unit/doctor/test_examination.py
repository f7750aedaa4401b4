"""What an area needs of those before it."""

from __future__ import annotations

import pytest

from airflow_provider_streams.doctor import examination
from airflow_provider_streams.doctor.finding import AREAS, Finding
from airflow_provider_streams.doctor.setup import Setup
from airflow_provider_streams.errors import InvalidRequest, SystemUnavailable
from airflow_provider_streams.testing.fake import FakeSource

SETUP = Setup("fake", "fake_default", FakeSource("numbers"))


@pytest.fixture
def checks(monkeypatch):
    """What each area finds; all are ok at first."""
    found = {area: [Finding(area, "it", "ok", "works")] for area in AREAS}

    def of(area):
        result = found[area]
        if isinstance(result, Exception):
            raise result
        return result

    monkeypatch.setattr(examination, "_checks", lambda *_: {area: lambda area=area: of(area) for area in AREAS})
    return found


def levels(setup=SETUP):
    seen = []
    report = examination.examine(setup, seen.append)
    assert seen == list(AREAS)
    return {one.area: one.level for one in report.findings}


@pytest.mark.usefixtures("checks")
def test_each_area_is_examined_in_order():
    assert set(levels().values()) == {"ok"}


def test_nothing_is_asked_of_a_stream_that_cannot_be_reached(checks):
    checks["connection"] = [Finding("connection", "broker: TCP", "error", "closed")]
    found = levels()
    assert {area for area, level in found.items() if level == "skipped"} == {"grants", "clock", "retention", "schema"}
    assert found["journal"] == "ok"


def test_without_a_grant_nothing_is_said_of_retention_and_schema(checks):
    checks["grants"] = [Finding("grants", "plan", "error", "refused")]
    found = levels()
    assert {area for area, level in found.items() if level == "skipped"} == {"retention", "schema"}


@pytest.mark.usefixtures("checks")
def test_without_a_source_only_the_connection_is_examined():
    found = levels(Setup("fake", "fake_default"))
    assert {area for area, level in found.items() if level == "skipped"} == {"grants", "retention", "schema"}


@pytest.mark.parametrize("error", [InvalidRequest("no"), SystemUnavailable("broker", "gone")])
def test_an_unexpected_error_of_one_area_ends_no_other(checks, error):
    checks["spark"] = error
    found = levels()
    assert found["spark"] == "error"
    assert found["sink"] == "ok"
