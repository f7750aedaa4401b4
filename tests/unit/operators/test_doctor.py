"""The operator does what the command does, on a worker."""

from __future__ import annotations

from datetime import timedelta

import pytest

from airflow_provider_streams import ParquetSink, StreamsDoctorOperator
from airflow_provider_streams.doctor import examination
from airflow_provider_streams.doctor.finding import Finding, report_of
from airflow_provider_streams.errors import InvalidRequest, InvalidWindow, SetupNotReady
from airflow_provider_streams.testing.fake import FakeSource


@pytest.fixture
def found(monkeypatch):
    """The findings of every examination, and the set-ups that were examined."""
    findings, setups = [], []

    def examine(setup):
        setups.append(setup)
        return report_of(str(setup), findings)

    monkeypatch.setattr(examination, "examine", examine)
    return findings, setups


def operator(**more):
    return StreamsDoctorOperator(task_id="check", source=FakeSource("numbers"), **more)


def test_the_report_is_the_xcom(found, tmp_path):
    findings, setups = found
    findings.append(Finding("spark", "Java", "warning", "old", "Update it"))
    report = operator(schedule="15m", sink=ParquetSink(str(tmp_path)), write=True).execute({})
    assert report["counts"]["warning"] == 1
    assert report["exit_status"] == 0
    (setup,) = setups
    assert (str(setup.window_schedule), setup.outage, setup.write) == ("15m", timedelta(days=7), True)


@pytest.mark.parametrize(("level", "strict"), [("error", False), ("error", True), ("warning", True)])
def test_errors_fail_the_task_and_warnings_only_if_it_is_strict(found, level, strict):
    found[0].append(Finding("clock", "difference", level, "five minutes", "NTP"))
    with pytest.raises(SetupNotReady, match="1 check failed: clock: difference: five minutes"):
        operator(strict=strict).execute({})


def test_writing_needs_a_sink():
    with pytest.raises(InvalidRequest, match="name the sink"):
        operator(write=True)


@pytest.mark.parametrize("schedule", ["hourly", "0 * * *", "0 0 31 2 *"])
def test_a_schedule_that_is_none_is_refused_when_the_dag_is_parsed(schedule):
    with pytest.raises(InvalidWindow):
        operator(schedule=schedule)
