"""`airflow streams doctor`: what it shows, and its exit status."""

from __future__ import annotations

import json

import pytest

from airflow_provider_streams.airflow_runtime import spark_launch
from airflow_provider_streams.cli.commands import doctor
from airflow_provider_streams.connections.journal import open_journal
from airflow_provider_streams.doctor import known_reader
from airflow_provider_streams.doctor.finding import Finding, report_of
from airflow_provider_streams.errors import InvalidRequest
from airflow_provider_streams.model.schema.payload import Utf8
from airflow_provider_streams.model.sinks.sink import ParquetSink

REPORT = report_of(
    "numbers on fake connection fake_default",
    [
        Finding("connection", "broker: TCP", "error", "no connection " * 10, "Check the port in the setting"),
        Finding("journal", "database", "ok", "it answers"),
    ],
)


@pytest.fixture(autouse=True)
def small_job(monkeypatch):
    """What Spark's small job would find: no JVM starts."""
    found = {"spark": "4.2.0", "java": "21", "pyspark": "4.2.0", "python": "python3"}
    monkeypatch.setattr(spark_launch, "examine", lambda *_: found)


@pytest.fixture
def examined(monkeypatch):
    """The set-ups that were examined; the report is `REPORT`."""
    seen = []

    def examine(setup, progress):
        progress("connection")
        seen.append(setup)
        return REPORT

    monkeypatch.setattr(doctor, "examine", examine)
    return seen


def status(streams, *arguments):
    with pytest.raises(SystemExit) as ended:
        streams("doctor", *arguments)
    return ended.value.code


def test_the_arguments_name_the_set_up(streams, examined, tmp_path, capsys):
    arguments = (
        "fake",
        "numbers",
        "--schedule",
        "*/5 * * * *",
        "--outage",
        "3d",
        "--slack",
        "5",
        "--reader",
        "nightly",
    )
    assert status(streams, *arguments, "--path", str(tmp_path), "--write", "--spark-conn-id", "cluster") == 2
    (setup,) = examined
    assert (setup.system, setup.conn_id, str(setup.source)) == ("fake", "fake_default", "numbers")
    assert str(setup.window_schedule) == "cron */5 * * * * UTC"
    assert (setup.outage.days, setup.slack.seconds, setup.reader) == (3, 5, "nightly")
    assert (setup.sink.path, setup.write, setup.spark_conn_id) == (str(tmp_path), True, "cluster")
    out = capsys.readouterr().out
    assert "-> Check the port in the setting" in out
    assert out.endswith("numbers on fake connection fake_default: 1 ok, 1 error\n")


def test_a_connection_alone_says_by_its_type_which_system_it_is_of(streams, examined, monkeypatch):
    monkeypatch.setenv("AIRFLOW_CONN_PROD", json.dumps({"conn_type": "fake"}))
    status(streams, "--conn-id", "prod")
    assert (examined[0].system, examined[0].conn_id, examined[0].source) == ("fake", "prod", None)


@pytest.mark.parametrize(("written", "schedule"), [("900", "15m"), ("@daily", "cron @daily UTC"), ("1d", "1d")])
def test_a_schedule_is_a_cron_expression_seconds_or_a_length(streams, examined, written, schedule):
    status(streams, "fake", "numbers", "--schedule", written)
    assert str(examined[0].window_schedule) == schedule


@pytest.mark.parametrize(
    ("words", "finding", "says"),
    [
        (("--write",), "sink  sink", "name the sink"),
        (("--slack", "-5"), "clock  slack", "slack cannot be negative"),
        (("--sink", "nowhere"), "sink  sink", "nowhere"),
    ],
)
@pytest.mark.usefixtures("examined")
def test_arguments_that_make_no_set_up_are_a_report_of_the_area_that_needs_them(streams, capsys, words, finding, says):
    assert status(streams, "fake", "numbers", *words) == 2
    shown = capsys.readouterr().out
    assert shown.startswith(f"ERROR  {finding}  ")
    assert says in shown
    assert "-> Correct " in shown
    assert shown.endswith("\narguments: 1 error\n")


def test_arguments_that_are_refused_are_json_too(streams, examined, capsys):
    assert status(streams, "pulsar", "non-persistent://public/default/x", "--json") == 2
    (found,) = json.loads(capsys.readouterr().out)["findings"]
    assert (found["level"], found["check"], "not stored" in found["says"]) == ("error", "source", True)


@pytest.mark.parametrize(
    ("option", "text", "says"),
    [
        ("schedule", "61 * * * *", "cron '61 * * * *'"),
        ("schedule", "soon", "cron expression"),
        (
            "schedule",
            "0 * * * * Europe/Osslo",
            "no time zone 'Europe/Osslo': did you mean 'Europe/Oslo'?",
        ),
        ("outage", "long", "'long'"),
    ],
)
@pytest.mark.usefixtures("examined")
def test_a_wrong_schedule_or_outage_fails_its_own_check_alone(streams, capsys, option, text, says):
    assert status(streams, "fake", "numbers", f"--{option}", text, "--json") == 2
    found = json.loads(capsys.readouterr().out)["findings"]
    (failed,) = [one for one in found if one["area"] == "retention"]
    assert (failed["check"], failed["level"]) == (option, "error")
    assert says in failed["says"]
    assert failed["next_step"] == f"Correct --{option}"
    assert len({one["area"] for one in found}) > 2, "the other areas were examined"


def test_a_reader_whose_windows_so_far_cannot_be_used_fails_the_area_schema_alone(streams, monkeypatch, capsys):
    def stored(*_):
        raise InvalidRequest("its windows were decoded in a way that this release does not know")

    monkeypatch.setattr(known_reader, "stored_landing", stored)
    with open_journal():
        pass
    status(streams, "fake", "numbers", "--reader", "nightly", "--json")
    found = json.loads(capsys.readouterr().out)["findings"]
    (failed,) = [one for one in found if one["area"] == "schema"]
    assert (failed["check"], failed["level"]) == ("reader", "error")
    assert "this release does not know" in failed["says"]
    assert len({one["area"] for one in found}) > 2, "the other areas were examined"


def test_texts_name_options_of_the_command_line(streams, monkeypatch, capsys):
    advice = "Set value='auto' for columns (widen=True adds some); on_decode_error='quarantine' lands the others"
    said = report_of("numbers", [Finding("schema", "columns", "warning", "write=True was not given", advice)])
    monkeypatch.setattr(doctor, "examine", lambda *_: said)
    for words in ((), ("--json",)):
        assert status(streams, "fake", "numbers", *words) == 0
        shown = capsys.readouterr().out
        assert "Set --value-format auto for columns (--sink-option widen=true adds some)" in shown
        assert "`airflow streams read .. --on-decode-error quarantine` lands" in shown
        assert "--write was not given" in shown


def test_json_has_the_report_and_nothing_else(streams, examined, capsys):
    assert status(streams, "fake", "numbers", "--json") == 2
    shown = json.loads(capsys.readouterr().out)
    assert shown["exit_status"] == 2
    assert shown["findings"][0]["check"] == "broker: TCP"


@pytest.mark.parametrize("width", [40, 60, 100, 200])
def test_no_line_is_wider_than_the_terminal(width):
    lines = doctor.table(REPORT, width).splitlines()
    assert max(map(len, lines)) <= max(width, len(REPORT.summary()))
    assert "no connection" in " ".join(lines)


def test_without_a_terminal_each_finding_is_one_line():
    assert len(doctor.table(REPORT, None).splitlines()) == len(REPORT.findings) + 2


def test_a_whole_examination_of_a_system_that_declares_no_diagnosis(streams, capsys):
    """The default system of tests has no services that could be asked: nothing of them is called ok."""
    assert status(streams, "fake", "numbers", "--json") in (0, 2)
    found = json.loads(capsys.readouterr().out)["findings"]
    levels = {(one["area"], one["check"]): one["level"] for one in found}
    assert levels["connection", "settings"] == "ok"
    assert levels["connection", "fake: sign-in"] == "skipped"
    assert levels["grants", "permissions"] == "skipped"
    assert levels["clock", "difference"] == "skipped"
    assert levels["journal", "database"] == "ok"
    assert "canary-77aa" not in json.dumps(found)


def test_a_connection_that_does_not_exist_is_an_error_with_the_nearest_name(streams, capsys):
    assert status(streams, "fake", "numbers", "--conn-id", "fake_defaul", "--json") == 2
    found = json.loads(capsys.readouterr().out)["findings"]
    (one,) = [one for one in found if one["area"] == "connection"]
    assert "did you mean 'fake_default'" in one["says"]


@pytest.mark.parametrize(
    ("uri", "system"),
    [("pulsar+ssl://h", "pulsar"), ("TLS://h", "pravega"), ("tcp://h", "pravega"), ("x://h", "pulsar")],
)
def test_a_scheme_as_type_says_the_system(streams, examined, monkeypatch, uri, system):
    monkeypatch.setenv("AIRFLOW_CONN_PROD", uri)
    status(streams, "--conn-id", "prod")
    assert examined[0].system == system


@pytest.fixture
def landed(streams, no_spark, tmp_path):
    """The folder of a table in which the reader `nightly` landed a window of texts, with a slack of 7 s."""
    folder, window = tmp_path / "table", "2026-11-20T10:00Z/2026-11-20T10:01Z"
    options = ("--value-format", "utf8", "--slack", "7", "--columns", "value,_key")
    streams("read", "fake", "numbers", "--window", window, "--reader", "nightly", "--path", str(folder), *options)
    return folder


def test_what_is_left_open_is_as_the_readers_windows_had_it(streams, examined, landed):
    status(streams, "fake", "numbers", "--path", str(landed))
    status(streams, "fake", "numbers", "--reader", "nightly")
    for setup in examined:
        assert setup.source.value == Utf8()
        assert (setup.decoding_unknown, setup.slack.seconds, setup.columns) == (False, 7, ("value", "_key"))
        assert setup.sink == ParquetSink(str(landed))


def test_arguments_count_more_than_the_readers_windows(streams, examined, landed):
    status(streams, "fake", "numbers", "--path", str(landed), "--slack", "9", "--value-format", "bytes")
    (setup,) = examined
    assert (setup.source.value.format, setup.decoding_unknown, setup.slack.seconds) == ("bytes", False, 9)


def test_no_format_is_assumed_where_nothing_says_one(streams, tmp_path, capsys):
    status(streams, "fake", "numbers", "--path", str(tmp_path / "new"), "--json")
    found = json.loads(capsys.readouterr().out)["findings"]
    (columns,) = [one for one in found if (one["area"], one["check"]) == ("sink", "columns")]
    assert columns["level"] == "skipped"
    assert "--value-format" in columns["next_step"]
