from __future__ import annotations

import threading
from datetime import UTC, datetime

import pytest

from airflow_provider_streams.errors import SystemUnavailable
from airflow_provider_streams.plugin import retention_horizon
from airflow_provider_streams.plugin.retention_horizon import Horizon, Horizons
from airflow_provider_streams.redaction import register_secret

THEN = datetime(2026, 11, 1, tzinfo=UTC)


async def test_an_answer_is_remembered():
    asked = []
    horizons = Horizons(lambda key: asked.append(key) or Horizon(THEN))
    assert horizons.known("a") is None
    assert (await horizons.get("a")).moment == THEN
    assert (await horizons.get("a")).moment == THEN
    assert horizons.known("a") == THEN
    assert asked == ["a"]


async def test_an_old_answer_is_asked_again(monkeypatch):
    monkeypatch.setattr(retention_horizon, "KEEP_SECONDS", -1)
    asked = []
    horizons = Horizons(lambda key: asked.append(key) or Horizon(THEN))
    await horizons.get("a")
    await horizons.get("a")
    assert asked == ["a", "a"]


async def test_a_slow_system_is_asked_once_and_answers_a_later_request():
    release, asked = threading.Event(), []

    def ask(key: str) -> Horizon:
        asked.append(key)
        release.wait(600)
        return Horizon(THEN)

    horizons = Horizons(ask)
    assert (await horizons.get("a", patience_seconds=0.01)).pending
    assert (await horizons.get("a", patience_seconds=0.01)).pending
    assert horizons.known("a") is None
    release.set()
    assert (await horizons.get("a", patience_seconds=30)).moment == THEN
    assert asked == ["a"]


@pytest.mark.parametrize("error", [SystemUnavailable("broker", "canary-1"), RuntimeError("canary-1")])
async def test_an_error_shows_its_kind_and_not_its_text(error):
    def ask(key: str) -> Horizon:
        raise error

    answer = await Horizons(ask).get("a")
    assert (answer.moment, answer.problem) == (None, type(error).__name__)
    assert "canary" not in repr(answer)


async def test_the_log_shows_no_secret_of_a_librarys_error(caplog):
    secret = register_secret("canary-of-a-library")

    def ask(_key):
        raise RuntimeError(secret)

    assert (await Horizons(ask).get("a")).problem == "RuntimeError"
    assert "RuntimeError: ***" in caplog.text
    assert "canary" not in caplog.text
