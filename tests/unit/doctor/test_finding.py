"""What findings say, and how a report ends."""

from __future__ import annotations

import pytest

from airflow_provider_streams.doctor.finding import Finding, Notes, report_of
from airflow_provider_streams.errors import SystemUnavailable


def found(*levels):
    return [Finding("spark", f"check {number}", level, "says") for number, level in enumerate(levels)]


@pytest.mark.parametrize(
    ("levels", "strict", "status"),
    [
        (("ok", "skipped"), True, 0),
        (("ok", "warning"), False, 0),
        (("ok", "warning"), True, 1),
        (("warning", "error"), False, 2),
        (("warning", "error"), True, 2),
        ((), True, 0),
    ],
)
def test_the_exit_status_is_0_1_for_warnings_of_a_strict_examination_and_2_for_errors(levels, strict, status):
    assert report_of("it", found(*levels)).exit_status(strict=strict) == status


def test_a_report_has_its_areas_in_one_order_and_counts_levels():
    report = report_of("it", [Finding("sink", "a", "ok", "x"), Finding("airflow", "b", "error", "y", "z")])
    assert [one.area for one in report.findings] == ["airflow", "sink"]
    assert report.summary() == "it: 1 ok, 1 error"
    assert report.to_json()["counts"] == {"ok": 1, "warning": 0, "error": 1, "skipped": 0}
    assert report.to_json()["findings"][0] == {
        "area": "airflow",
        "check": "b",
        "level": "error",
        "says": "y",
        "next_step": "z",
    }


def test_an_error_becomes_a_finding_of_one_line_with_a_next_step():
    notes = Notes("journal")
    with notes.failing("database", "Check it."):
        raise SystemUnavailable("db", "gone\n  away")
    (one,) = notes.findings
    assert (one.level, one.next_step) == ("error", "Check it")
    assert "gone away" in one.says
    assert "\n" not in one.says
    assert notes.failed("database")
