"""What Airflow says of itself."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from airflow_provider_streams.doctor import airflow
from airflow_provider_streams.doctor.airflow import Health
from airflow_provider_streams.doctor.finding import Notes

NOW = datetime(2026, 11, 20, 10, tzinfo=UTC)


@pytest.mark.parametrize(
    ("told", "level", "words"),
    [
        ({"status": "healthy", "latest_triggerer_heartbeat": "2026-11-20T09:59:57+00:00"}, "ok", "3 s ago"),
        ({"status": "unhealthy", "latest_triggerer_heartbeat": "2026-11-20T09:00:00+00:00"}, "warning", "3600 s ago"),
        ({"status": None}, "warning", "no triggerer"),
        (None, "warning", "no triggerer"),
    ],
)
def test_a_triggerer_is_alive_only_if_airflow_says_so(told, level, words):
    notes = Notes("airflow")
    airflow.judge_triggerer(notes, Health("the API server", {"triggerer": told} if told else {}), NOW)
    assert notes.findings[0].level == level
    assert words in notes.findings[0].says


def test_an_airflow_that_cannot_be_asked_is_not_called_ok(monkeypatch):
    monkeypatch.setenv("_AIRFLOW_PROCESS_CONTEXT", "")
    monkeypatch.setenv("AIRFLOW__API__BASE_URL", "http://127.0.0.1:1")
    found = {one.check: one for one in airflow.check_airflow()}
    assert found["triggerer"].level == "warning"
    assert "airflow-provider-streams" in found["versions"].says
    assert found["plugin"].level == "ok"
