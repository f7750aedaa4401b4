"""What an area needs of those before it."""

from __future__ import annotations

import pytest

from airflow_provider_streams.doctor import examination
from airflow_provider_streams.doctor.finding import AREAS, Finding
from airflow_provider_streams.doctor.setup import Setup
from airflow_provider_streams.errors import InvalidRequest, MissingDependency, SystemUnavailable
from airflow_provider_streams.redaction import register_secret
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


def findings(area):
    return [one for one in examination.examine(SETUP).findings if one.area == area]


def test_an_error_that_no_check_expects_is_a_finding_without_secrets(checks):
    register_secret("hunter2-and-more")
    checks["spark"] = NameError("name 'kube_client' is not defined, hunter2-and-more")
    (found,) = findings("spark")
    assert found.level == "error"
    assert found.says.startswith("NameError: name 'kube_client'")
    assert "hunter2" not in found.says
    assert "Report this" in found.next_step
    assert findings("sink")[0].level == "ok", "the other areas are examined"


def test_a_missing_package_has_its_command_and_where_to_run_it(checks):
    checks["sink"] = MissingDependency("pyiceberg", "iceberg")
    (found,) = findings("sink")
    assert "pip install 'airflow-provider-streams[iceberg]'" in found.says
    assert found.next_step == "Run that command in the Python of Airflow's workers"
