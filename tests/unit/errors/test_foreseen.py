"""Which errors name doctor: those of the checks that it makes as well."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest

from airflow_provider_streams.airflow_runtime.spark_launch import launcher_for
from airflow_provider_streams.errors import DOCTOR_HINT, SinkError, StreamsError, WindowNotReady
from airflow_provider_streams.hooks.pulsar import PulsarHook
from airflow_provider_streams.lake import connections
from airflow_provider_streams.lake.storage import Storage
from airflow_provider_streams.lake.storage_errors import errors_at
from airflow_provider_streams.model.window.basis import SLACK
from airflow_provider_streams.model.window.window import Window
from airflow_provider_streams.operators.pulsar import PulsarSource
from airflow_provider_streams.retry import error_event
from airflow_provider_streams.spark.error_transport import one_line
from airflow_provider_streams.spark.job.outcomes import WindowFailure
from airflow_provider_streams.systems.base import PlanRequest
from airflow_provider_streams.systems.pulsar.planning.request_validation import check_server_time, check_time

_BROKER = "pulsar://127.0.0.1:1"


def _refusal(act: Callable[[], object]) -> StreamsError:
    with pytest.raises(StreamsError) as found:
        act()
    return found.value.name_doctor()


def _connected(monkeypatch: pytest.MonkeyPatch, **extra: object) -> PulsarHook:
    told = {"conn_type": "pulsar", "extra": {"service_url": _BROKER, **extra}}
    monkeypatch.setenv("AIRFLOW_CONN_PULSAR_DEFAULT", json.dumps(told))
    return PulsarHook("pulsar_default")


def test_settings_of_a_connection_name_doctor(monkeypatch: pytest.MonkeyPatch) -> None:
    misspelt = _refusal(_connected(monkeypatch, tls_ca_fiel="x").endpoint)
    assert "'tls_ca_file'" in str(misspelt)
    assert str(misspelt).endswith(DOCTOR_HINT)
    assert str(_refusal(_connected(monkeypatch, lookup_timeout_seconds="soon").endpoint)).count(DOCTOR_HINT) <= 1
    assert DOCTOR_HINT in str(_refusal(_connected(monkeypatch).endpoint().route)), "no admin_url"
    no_file = _connected(monkeypatch, tls_ca_file="/nope/ca.pem").endpoint()
    assert str(_refusal(no_file.ssl_context)).endswith(DOCTOR_HINT)


async def test_settings_name_doctor_in_an_event_loop_as_well(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(StreamsError) as found:
        await _connected(monkeypatch, tls_ca_fiel="x").aoptions()
    assert error_event(found.value)["message"].endswith(DOCTOR_HINT)


def test_a_wrong_option_of_a_hook_does_not_name_doctor() -> None:
    assert DOCTOR_HINT not in str(_refusal(lambda: PulsarHook(options={"tls_ca_fiel": "x"})))


def test_spark_connections_name_doctor(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_SPARK_ODD", json.dumps({"conn_type": "ftp"}))
    assert str(_refusal(lambda: launcher_for("spark_odd"))).endswith(DOCTOR_HINT)


def test_connections_of_tables_name_doctor(monkeypatch: pytest.MonkeyPatch) -> None:
    from airflow_provider_streams.connections.table_properties import properties_of

    monkeypatch.setattr(connections, "_resolvers", [properties_of])
    monkeypatch.setenv("AIRFLOW_CONN_LAKE", json.dumps({"conn_type": "ftp"}))
    assert str(_refusal(lambda: connections.properties_of("lake"))).endswith(DOCTOR_HINT)
    assert str(_refusal(Storage("s3://lake/x", {"s3.connect-timeout": "soon"}).open)).endswith(DOCTOR_HINT)


def test_a_folder_that_cannot_be_written_names_doctor() -> None:
    def refused() -> None:
        with errors_at("/lake", "the folder cannot be used"):
            raise OSError(30, os.strerror(30))

    def broken() -> None:
        with errors_at("/lake", "the folder cannot be used"):
            raise OSError(20, os.strerror(20))

    assert str(_refusal(refused)).endswith(DOCTOR_HINT)
    assert DOCTOR_HINT not in str(_refusal(broken))


def test_a_clock_that_is_ahead_names_doctor_and_a_window_that_is_to_come_does_not() -> None:
    end = datetime(2026, 1, 1, 1, tzinfo=UTC)
    window = Window(end - timedelta(hours=1), end)
    request = PlanRequest(PulsarSource("a/b/c"), window, "reader", slack=SLACK)
    with pytest.raises(WindowNotReady) as ahead:
        check_server_time(request, end)
    assert str(ahead.value.name_doctor()).endswith(DOCTOR_HINT)
    with pytest.raises(WindowNotReady) as early:
        check_time(request, end)
    assert DOCTOR_HINT not in str(early.value.name_doctor())


def test_what_a_job_says_of_an_error_survives_its_way_out_of_spark() -> None:
    error = SinkError("t", "its folder\n cannot be written").mark_foreseeable()
    assert one_line(error).foreseeable
    told = WindowFailure.from_json(json.loads(json.dumps(WindowFailure.of(error).to_json())))
    again = told.exception
    assert isinstance(again, SinkError)
    assert str(again.name_doctor()).endswith(DOCTOR_HINT)
    plain = WindowFailure.from_json(WindowFailure.of(SinkError("t", "odd")).to_json()).exception
    assert isinstance(plain, SinkError)
    assert not plain.foreseeable
