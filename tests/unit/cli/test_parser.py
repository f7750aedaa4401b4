from __future__ import annotations

import argparse
import json
import logging
import subprocess
import sys
from datetime import timedelta
from typing import Any

import duckdb
import pytest

from airflow_provider_streams import ParquetSink, Window
from airflow_provider_streams.connections.journal import open_journal
from airflow_provider_streams.errors import InvalidRequest
from airflow_provider_streams.hooks.base import connection_hook_of
from airflow_provider_streams.model.plan.plan import Terms
from airflow_provider_streams.model.sinks.landing import Landing
from airflow_provider_streams.model.stream.cut import Cut
from airflow_provider_streams.model.stream.position import Position
from airflow_provider_streams.model.window.window_schedule import Every
from airflow_provider_streams.testing.fake import EPOCH, FakeSource
from airflow_provider_streams.testing.landing import run_without_spark, without_transforms
from airflow_provider_streams.windows.claim.claim import claim_table
from airflow_provider_streams.windows.claim.landing_request import LandingRequest
from airflow_provider_streams.windows.claim.overrides import Overrides

WINDOW = "2026-11-20T10:00Z/2026-11-20T10:00:10Z"
SPAN = ("--start", "2026-11-20T10:00Z", "--end", "2026-11-20T10:00:40Z", "--window-length", "10s")


def test_a_plan_is_shown_as_a_table(streams, capsys):
    streams("plan", "fake", "numbers", "--window", WINDOW, "--slack", "0")
    shown = capsys.readouterr().out
    assert "first kept" in shown
    assert "20 entries" in shown
    assert "canary-77aa" not in shown


def test_a_plan_is_shown_as_json_and_pins_nothing(streams, capsys):
    streams("plan", "fake", "numbers", "--window", WINDOW, "--slack", "0", "--output", "json")
    shown = json.loads(capsys.readouterr().out)
    assert shown["end_cut"] == {"numbers-0": "10", "numbers-1": "10"}
    streams("coverage")
    assert capsys.readouterr().out == "the journal knows no window yet: nothing was read\n"


def test_a_read_is_recorded_and_shown_by_coverage(streams, no_spark, tmp_path, capsys):
    streams("read", "fake", "numbers", "--window", WINDOW, "--slack", "0", "--path", str(tmp_path / "lake"))
    assert "20 rows, complete" in capsys.readouterr().out
    span = ("--start", "2026-11-20T10:00Z", "--end", "2026-11-20T10:00:20Z")
    streams("coverage", "--source", "numbers", *span)
    assert "covered" in capsys.readouterr().out
    streams("coverage", "--reader", "cli", *span, "--output", "json")
    (row,) = json.loads(capsys.readouterr().out)
    assert (row["source"], row["reader"]) == ("fake:fake_default:numbers", "cli")


TYPOS = [
    (("coverage", "--reader", "nightli"), "no reader 'nightli'; did you mean 'nightly'?"),
    (("coverage", "--reader", "nightli", "--output", "json"), "no reader 'nightli'; did you mean 'nightly'?"),
    (("coverage", "--source", "numberz"), "no source like 'numberz'; did you mean 'numbers'?"),
    (("coverage", "--source", "numb", "--reader", "z"), "no reader 'z' of a source like 'numb'; known: nightly"),
    (("quarantine", "list", "--reader", "nightli"), "no reader 'nightli'; did you mean 'nightly'?"),
    (("forget", "nightli"), "no reader 'nightli'; did you mean 'nightly'? See `airflow streams coverage`"),
    (("cuts", "list", "fake", "numberz"), "no source 'numberz'; did you mean 'numbers'?"),
]


def test_a_mistyped_reader_or_source_is_an_error_with_the_nearest_name(streams, no_spark, tmp_path, capsys):
    lake = ("--path", str(tmp_path / "lake"))
    streams("read", "fake", "numbers", "--window", WINDOW, "--slack", "0", "--reader", "nightly", *lake)
    for arguments, message in TYPOS:
        with pytest.raises(SystemExit) as ended:
            streams(*arguments)
        assert ended.value.code == 1
        assert message in capsys.readouterr().err


def test_a_read_of_a_mistyped_source_leaves_no_reader(streams, no_spark, tmp_path, monkeypatch, capsys):
    connection = {"conn_type": "fake", "extra": {"events": "60", "streams": "numbers"}}
    monkeypatch.setenv("AIRFLOW_CONN_FAKE_DEFAULT", json.dumps(connection))
    lake = ("--path", str(tmp_path / "lake"), "--slack", "0")
    for command in (("read", "--window", WINDOW), ("backfill", *SPAN)):
        with pytest.raises(SystemExit):
            streams(command[0], "fake", "numberz", *command[1:], *lake)
        assert "SourceNotFound: numberz does not exist" in capsys.readouterr().err
    streams("read", "fake", "numbers", "--window", WINDOW, *lake)
    with open_journal() as journal:
        assert journal.sources() == [("fake:fake_default:numbers", "cli")]


@pytest.mark.parametrize("command", [("read", "--window", WINDOW), ("backfill", *SPAN)], ids=["read", "backfill"])
def test_a_first_read_of_an_unknown_column_leaves_no_reader(streams, no_spark, tmp_path, capsys, command):
    def refused(*options: str) -> str:
        with pytest.raises(SystemExit):
            streams(command[0], "fake", "numbers", *command[1:], "--slack", "0", *options)
        return capsys.readouterr().err

    lake = ("--path", str(tmp_path / "lake"))
    assert "has no column 'nosuch'" in refused(*lake, "--columns", "value,nosuch")
    with open_journal() as journal:
        assert not journal.sources()
    streams(command[0], "fake", "numbers", *command[1:], "--slack", "0", *lake)


def test_errors_name_options_of_the_command_line(streams, no_spark, tmp_path, capsys):
    lake = ("--path", str(tmp_path / "lake"), "--slack", "0")
    streams("read", "fake", "numbers", "--window", WINDOW, "--reader", "old", *lake)
    capsys.readouterr()
    with pytest.raises(SystemExit):
        streams("read", "fake", "numbers", "--window", WINDOW, "--reader", "new", *lake)
    assert "go on with --reader old" in capsys.readouterr().err
    with open_journal() as journal:
        assert [reader for _, reader in journal.sources()] == ["old"], "a mistyped reader is not listed"
    with pytest.raises(SystemExit):
        streams("read", "fake", "numbers", "--window", WINDOW, "--reader", "old", "--columns", "value", *lake)
    said = capsys.readouterr().err
    assert said.startswith("LandingMismatch: numbers: columns value instead of none. Reader 'old' lands in"), said
    assert "(--full-refresh sets aside" in said
    assert "full_refresh=True" not in said


def test_keys_of_no_column_are_named_with_advice_that_works(streams, no_spark, tmp_path, monkeypatch, capsys):
    extra = {"events": "60", "records": "1"}
    monkeypatch.setenv("AIRFLOW_CONN_FAKE_DEFAULT", json.dumps({"conn_type": "fake", "extra": extra}))
    read = ("read", "fake", "numbers", "--window", WINDOW, "--slack", "0", "--value-format", "json")
    streams(*read, "--value-schema", "n long, part string", "--path", str(tmp_path / "lake"))
    said = capsys.readouterr().out
    assert "20 JSON objects have keys that no column takes (shard), while these columns are empty in all" in said
    assert (
        ": part. If a property has another name in JSON, name its key, like --value-format auto --value-schema" in said
    )
    assert "again with --replan. --value-refuse-unmatched refuses such objects" in said
    named = ("--value-schema", "n long, part string from shard", "--replan", "--path", str(tmp_path / "lake"))
    streams(*read, *named)
    assert "no column takes" not in capsys.readouterr().out
    rows = duckdb.read_parquet(f"{tmp_path}/lake/**/*.parquet").select("part").fetchall()
    assert {part for (part,) in rows} == {"numbers-0", "numbers-1"}
    with open_journal() as journal:
        before, after = (run.receipt for run in journal.runs("fake:fake_default:numbers", "cli", Window.parse(WINDOW)))
    assert (before.other_keys, before.empty_columns, after.other_keys) == (("shard",), ("part",), ())


def test_logs_name_options_of_the_command_line(streams, no_spark, tmp_path, capsys, caplog):
    """Only while a command runs: the same logger of a task names arguments."""
    log = logging.getLogger("airflow_provider_streams.windows.plan.planning")
    lake = ("--path", str(tmp_path / "lake"), "--slack", "0")
    streams("read", "fake", "numbers", "--window", WINDOW, *lake)
    streams("read", "fake", "numbers", "--window", WINDOW, "--path", str(tmp_path / "lake"), "--slack", "1")
    (said,) = [one for one in caplog.messages if "was planned with" in one]
    assert said.endswith("--replan makes a new plan")
    log.warning("replan=%s", True)
    assert caplog.messages[-1] == "replan=True"


def test_settings_are_shown_with_their_origin_and_without_secrets(streams, capsys, monkeypatch):
    monkeypatch.setenv("STREAMS_FAKE_SHARDS", "3")
    streams("config", "fake", "--output", "json")
    shown = json.loads(capsys.readouterr().out)["fake"]
    assert shown["events"] == {"value": "60", "from": "connection fake_default, extra events"}
    assert shown["shards"] == {"value": "3", "from": "environment STREAMS_FAKE_SHARDS"}
    assert shown["token"] == {"value": "***", "from": "connection fake_default, extra token"}
    assert shown["value_bytes"]["from"] == "not set"
    streams("config", "fake")
    table = capsys.readouterr().out
    assert "connection fake_default, extra events" in table
    assert "canary-77aa" not in table


def test_a_setting_that_its_system_refuses_is_shown_with_the_reason(streams, capsys, monkeypatch):
    monkeypatch.setenv("PULSAR_SERVICE_URL", "pulsar://127.0.0.1:6650")
    monkeypatch.setenv("STREAMS_PULSAR_TLS_VERIFY_HOSTNAME", "maybe")
    monkeypatch.setenv("STREAMS_PULSAR_REQUEST_TIMEOUT_SECONDS", "0")
    streams("config", "--output", "json")
    shown = json.loads(capsys.readouterr().out)
    problems = {name: one["problem"] for name, one in shown["pulsar"].items() if "problem" in one}
    assert problems == {
        "tls_verify_hostname": "tls_verify_hostname must be true or false, got 'maybe'",
        "request_timeout_seconds": "request_timeout_seconds must be positive, and 86,400 at most, got 0.0",
    }
    streams("config")
    assert "pulsar refuses this: tls_verify_hostname must be true or false" in capsys.readouterr().out


REFUSED_BY_THE_HOOK = [
    ({"conn_type": "pulsar", "extra": {"service_url": "pulsar+ssl://:canary-77bb@h:1"}}, "must not hold credentials"),
    ({"conn_type": "pulsar+ssl", "host": "h", "extra": {"token_file": "/run/token"}}, "token_file"),
    ({"conn_type": "pulsar+ssl", "host": "h", "extra": {"tls_cert_file": "/c"}}, "tls_cert_file"),
    ({"conn_type": "pulsar"}, "the option service_url is missing"),
    ({"conn_type": "tls", "host": "h", "login": "canary-77bb"}, "basic needs the option password"),
    (
        {
            "conn_type": "pravega",
            "host": "h",
            "extra": {"registry_url": "http://r", "registry_username": "canary-77bb"},
        },
        "belong together",
    ),
    ({"conn_type": "https", "host": "h", "login": "canary-77bb"}, "belong together"),
]
KINDS = {"pulsar+ssl": "pulsar", "tls": "pravega", "https": "schema_registry"}


def test_every_setting_that_is_wrong_alone_is_named_at_once(streams, capsys, monkeypatch):
    extra = {"service_url": "pulsar://:canary-77bb@h:1", "admin_url": "h:8080", "request_timeout_seconds": "soon"}
    monkeypatch.setenv("AIRFLOW_CONN_PULSAR_DEFAULT", json.dumps({"conn_type": "pulsar", "extra": extra}))
    streams("config", "pulsar", "--output", "json")
    shown = json.loads(capsys.readouterr().out)["pulsar"]
    assert {name for name, one in shown.items() if "problem" in one} == extra.keys()


@pytest.mark.parametrize(("connection", "said"), REFUSED_BY_THE_HOOK)
def test_what_the_hook_would_refuse_is_shown_too(streams, capsys, monkeypatch, connection, said):
    kind = KINDS.get(connection["conn_type"], connection["conn_type"])
    monkeypatch.setenv("AIRFLOW_CONN_SHOWN", json.dumps(connection))
    hook = connection_hook_of(kind, "shown")
    with pytest.raises(InvalidRequest, match=said) as refused:
        _ = hook.endpoint().registry if kind == "pravega" else hook.endpoint()
    streams("config", kind, "--conn-id", "shown", "--output", "json")
    shown = capsys.readouterr().out
    assert str(refused.value) in [one.get("problem") for one in json.loads(shown)[kind].values()]
    streams("config", kind, "--conn-id", "shown")
    table = capsys.readouterr().out
    assert f"{kind} refuses this: {refused.value}\n" in table
    assert "canary" not in shown + table


def test_a_users_name_is_shown_next_to_a_password(streams, capsys, monkeypatch):
    connection = {"conn_type": "https", "host": "h", "login": "reader", "password": "canary-77bb"}
    monkeypatch.setenv("AIRFLOW_CONN_REGISTRY_DEFAULT", json.dumps(connection))
    streams("config", "schema_registry", "--output", "json")
    shown = json.loads(capsys.readouterr().out)["schema_registry"]
    assert shown["username"] == {"value": "reader", "from": "connection registry_default, field login"}
    assert shown["password"]["value"] == "***"
    assert not any("problem" in one for one in shown.values())


@pytest.mark.parametrize("words", [["pravega", "orders"], ["pravega", "shop/orders"], ["pravega", "shop", "orders"]])
def test_a_pravega_stream_is_named_with_or_without_its_scope(monkeypatch, words):
    from airflow_provider_streams.cli.arguments import source_of_args

    monkeypatch.setenv("PRAVEGA_SCOPE", "shop")
    args = argparse.Namespace(
        source=words, topic=[], pattern=None, scope=None, tags=None, conn_id=None, event_time_unit=None
    )
    assert str(source_of_args(args)) == "shop/orders"


def test_the_columns_of_payloads_are_chosen_by_version_or_text():
    from airflow_provider_streams.cli.arguments import source_of_args
    from airflow_provider_streams.cli.parser import BACKFILL
    from airflow_provider_streams.model.schema.payload import Auto

    words = "pulsar shop/eu/orders --start 2026-11-20 --value-format auto --value-version 0 --value-as-text"
    parser = argparse.ArgumentParser()
    for arg in BACKFILL.args:
        arg.add_to_parser(parser)
    found: Any = source_of_args(parser.parse_args([*words.split(), "--value-refuse-unmatched"]))
    assert found.value == Auto(version=0, as_text=True, refuse_unmatched=True)


def test_pravega_streams_are_chosen_by_scope_pattern_and_tags():
    from airflow_provider_streams.cli.arguments import source_of_args

    none = {"source": ["pravega"], "topic": [], "pattern": None, "scope": None, "tags": None}
    rest = {"conn_id": None, "event_time_unit": None}
    given = {"scope": "shop", "tags": "eu, orders"}
    assert source_of_args(argparse.Namespace(**none | rest | given)).key == (
        "pravega:pravega_default:tags:eu,orders:scope:shop"
    )
    given = {"pattern": "shop/order-.*"}
    assert source_of_args(argparse.Namespace(**none | rest | given)).pattern == "shop/order-.*"
    given = {"source": ["pravega", "shop/a", "shop/b"]}
    assert source_of_args(argparse.Namespace(**none | rest | given)).streams == ("shop/a", "shop/b")
    with pytest.raises(InvalidRequest, match="name the source"):
        source_of_args(argparse.Namespace(**none | rest))


def test_settings_of_every_system_are_shown_with_what_is_missing(streams, capsys, monkeypatch):
    monkeypatch.setenv("PRAVEGA_CONTROLLER_URI", "tcp://c:9090")
    streams("config")
    shown = capsys.readouterr().out
    assert "environment PRAVEGA_CONTROLLER_URI" in shown
    assert "connection 'pulsar_default' does not exist" in shown


BACKFILL = ("backfill", "fake", "numbers", *SPAN, "--slack", "0")


def test_a_backfill_is_previewed_and_changes_nothing(streams, no_spark, capsys):
    streams(*BACKFILL, "--dry-run")
    shown = capsys.readouterr().out
    assert "total 4 windows, 1.3 kB, 8 tasks, 1 Spark job" in shown
    streams(*BACKFILL, "--dry-run", "--output", "json")
    assert len(json.loads(capsys.readouterr().out)["windows"]) == 4
    streams("coverage", "--source", "numbers", "--reader", "cli")
    assert "the journal knows no window yet" in capsys.readouterr().out
    streams("coverage", "--output", "json")
    assert json.loads(capsys.readouterr().out) == []


def test_a_backfill_fills_and_coverage_shows_it(streams, no_spark, tmp_path, capsys):
    streams(*BACKFILL, "--path", str(tmp_path / "lake"), "--max-windows", "3")
    shown = capsys.readouterr().out
    assert "job 1: 3 windows covered, 60 rows" in shown
    assert "job 2: 1 window covered, 20 rows" in shown
    streams("coverage", *SPAN[:3], "2026-11-20T10:01Z", *SPAN[4:], "--output", "json")
    (row,) = json.loads(capsys.readouterr().out)
    assert (row["counts"]["covered"], row["counts"]["missing"], row["horizon"]) == (4, 2, None)
    streams(*BACKFILL, "--path", str(tmp_path / "lake"), "--output", "json")
    again = json.loads(capsys.readouterr().out)
    assert (again["windows"], again["verdict"]) == ([], "complete")


@pytest.fixture
def jobs(monkeypatch):
    """What was given to Spark, which is not there: no transform is applied."""
    from airflow_provider_streams.airflow_runtime import spark_launch

    given = []

    def launch(work, *_):
        given.extend(work.specs)
        return run_without_spark(without_transforms(work))

    monkeypatch.setattr(spark_launch, "launch", launch)
    return given


def test_rows_land_as_their_reader_landed_so_far(streams, jobs, tmp_path, capsys):
    """A command without a DAG and without a path asks the journal."""
    landing = Landing(ParquetSink(str(tmp_path / "lake"), "gzip"), "jobs:clean", ("value", "number"))
    source, ten = FakeSource("numbers"), timedelta(seconds=10)
    with open_journal() as journal:
        claim_table(
            journal,
            LandingRequest(source, "orders", landing, "publish", Every(ten)),
            [Window(EPOCH, EPOCH + ten)],
            Overrides(),
        )
    for words in (("read", "--window", WINDOW), ("backfill", *SPAN[:4])):
        streams(words[0], "fake", "numbers", "--slack", "0", "--reader", "orders", *words[1:], "--output", "json")
    assert {Landing(job.sink, job.transform, job.columns) for job in jobs} == {landing}
    assert {job.terms.mark.reader for job in jobs} == {"orders"}
    assert len({job.plan.window for job in jobs}) == len(jobs) == 4
    assert len(list((tmp_path / "lake").glob("window_start=*"))) == 4


def test_which_time_of_an_event_counts_is_as_the_reader_read_so_far(streams, jobs, tmp_path, capsys):
    landing, time_of = Landing(ParquetSink(str(tmp_path / "lake"))), {"event_time": "at", "unit": "ms"}
    source, ten = FakeSource("numbers"), timedelta(seconds=10)
    with open_journal() as journal:
        landing_request = LandingRequest(source, "orders", landing, "event", Every(ten), time_of)
        claim_table(journal, landing_request, [Window(EPOCH, EPOCH + ten)], Overrides())
    read = ("read", "fake", "numbers", "--reader", "orders", "--window", WINDOW, "--output", "json")
    streams(*read, "--allowed-lateness", "30", "--slack", "5")
    assert jobs[0].plan.terms == Terms(timedelta(seconds=5), None, "fail", timedelta(seconds=30), "at", "ms", "exact")
    capsys.readouterr()
    for other in (
        ("--event-time", "other"),
        ("--basis", "publish"),
        ("--basis", "event", "--event-time", "b", "--unit", "s"),
    ):
        with pytest.raises(SystemExit):
            streams(*read, *other)
        assert "instead of 'event' --event-time at --unit ms" in capsys.readouterr().err


@pytest.mark.parametrize(
    "case",
    [
        (
            "event",
            {"slack": 5, "allowed_lateness": 30},
            {"allowed_lateness": 20},
            {"slack": 60, "allowed_lateness": 600},
        ),
        ("publish", {"slack": 5}, {"slack": 7}, {"slack": 60}),
        ("append", {"max_skew": 3600}, {"max_skew": 4000}, {"max_skew": 300}),
    ],
)
def test_what_is_left_open_of_a_basis_is_as_the_readers_last_window(streams, jobs, tmp_path, case):
    basis, asked, again, default = case

    def read(number, reader="orders", *given, **lengths):
        options = [word for name, value in lengths.items() for word in (f"--{name.replace('_', '-')}", str(value))]
        start, end = (EPOCH + timedelta(seconds=10 * (number + later)) for later in (0, 1))
        window = f"{start.isoformat()}/{end.isoformat()}"
        words = ("--reader", reader, "--path", str(tmp_path / reader), "--window", window)
        streams("read", "fake", "numbers", *words, *options, *given)
        return {name: length.total_seconds() for name, length in jobs[-1].plan.terms.lengths.items()}

    record_edges(5)
    by_name = ("--basis", basis)
    assert read(0, "orders", *by_name, **asked) == asked
    assert read(1) == asked, "as its last window"
    assert read(2, "orders", *by_name) == asked, "its name alone leaves the rest open"
    assert read(3, **again) == asked | again, "what is given counts"
    assert read(4) == asked | again, "and from then on"
    assert read(0, "another", *by_name) == default, "of a reader that has read nothing"


def record_edges(count):
    """Cuts at the edges of so many windows of ten seconds."""
    with open_journal() as journal:
        for number in range(count + 1):
            at = EPOCH + timedelta(seconds=10 * number)
            cut = Cut({f"numbers-{shard}": Position.of(10 * number) for shard in (0, 1)})
            journal.record_cut(FakeSource("numbers").key, cut, sampled_from=at, sampled_to=at, recorder="test")


def test_coverage_shows_how_far_back_the_stream_reaches(streams, no_spark, tmp_path, monkeypatch, capsys):
    streams(*BACKFILL, "--path", str(tmp_path / "lake"), "--end", "2026-11-20T10:00:20Z")
    connection = {"conn_type": "fake", "extra": {"events": "60", "head": "30"}}
    monkeypatch.setenv("AIRFLOW_CONN_FAKE_DEFAULT", json.dumps(connection))
    streams("coverage", *SPAN, "--output", "json")
    captured = capsys.readouterr().out
    (row,) = json.loads(captured[captured.index("[") :])
    assert (row["horizon"], row["beyond_horizon"]) == ("2026-11-20T10:00:30Z", 1)
    streams("coverage", *SPAN)
    assert "oldest time the stream still serves: 2026-11-20T10:00:30Z" in capsys.readouterr().out
    streams("coverage", *SPAN, "--output", "json", "--offline")
    assert json.loads(capsys.readouterr().out)[0]["horizon"] is None
    monkeypatch.delenv("AIRFLOW_CONN_FAKE_DEFAULT")
    streams("coverage", *SPAN)
    said = capsys.readouterr()
    assert "the retention horizon is not known: InvalidRequest" in said.err
    assert "covered 2 of 4" in said.out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((*BACKFILL, "--columns", "value"), "InvalidRequest: --columns belongs to --path"),
        (BACKFILL, "InvalidRequest: say where the rows go with --path or --sink"),
        ((*BACKFILL, "--sink", "shop.orders"), "InvalidRequest: --sink takes KIND:NAME, like iceberg:shop.orders"),
        ((*BACKFILL, "--sink", "hudi:shop.orders"), "InvalidRequest: no sink of kind 'hudi'"),
        ((*BACKFILL, "--sink", "iceberg:orders"), "InvalidRequest: an Iceberg table is named with its namespace"),
        ((*BACKFILL, "--sink", "a.b", "--path", "/lake"), "InvalidRequest: --path names a Parquet table: leave it out"),
        ((*BACKFILL, "--sink-option", "widen=true"), "InvalidRequest: --sink-option needs --sink"),
        ((*BACKFILL, "--sink", "delta:/lake", "--sink-option", "widen"), "InvalidRequest: --sink-option takes NAME"),
        (
            (*BACKFILL, "--sink", "delta:/lake", "--sink-option", "wide=true"),
            "InvalidRequest: --sink-option: a sink of kind 'delta' has no 'wide'; it has conn_id, widen",
        ),
        ((*BACKFILL, "--dry-run", "--select", "some"), "InvalidRequest: select must be one or several of missing"),
        ((*BACKFILL, "--dry-run", "--lookback", "long"), "InvalidWindow: 'long' is not a length of time"),
        (
            ("backfill", "fake", "numbers", *SPAN, "--dry-run", "--basis", "chained"),
            "InvalidRequest: a backfill reads windows of time",
        ),
        ((*BACKFILL, "--dry-run", "--basis", "chained"), "InvalidRequest: --slack does not belong to basis 'chained'"),
        (("plan", "fake", "numbers", "--window", "yesterday"), "InvalidWindow: 'yesterday' is not a window"),
        (("plan", "fake", "numbers", "--window", "2026-11-20T10:00Z/2026-11-21T10:00Z"), "WindowNotReady: numbers"),
        (("plan", "fake", "numbers", "--window", WINDOW, "--slack", "nan"), "InvalidRequest: --slack is a number of"),
        (("plan", "fake", "numbers", "--window", WINDOW, "--max-skew", "1e300"), "InvalidRequest: --max-skew is"),
        (("plan", "fake", "numbers", "--window", WINDOW, "--max-skew", "-1"), "InvalidRequest: --max-skew must not"),
        (("coverage", "--end", "0001-01-01T00:00Z"), "InvalidWindow: a window must end after it starts"),
        (("coverage", "--end", "9999-12-31T23:59-12:00"), "InvalidWindow: a time is outside of the years 1 to 9999"),
        ((*BACKFILL, "--dry-run", "--lookback", "9" * 30 + "d"), "InvalidWindow: '999"),
        (("plan", "kafka", "numbers", "--window", WINDOW), "InvalidRequest: no stream system 'kafka'"),
        (("plan", "--window", WINDOW), "InvalidRequest: name the source"),
        (("plan", "--topic", "non-persistent://a/b/c", "--window", WINDOW), "InvalidName: 'non-persistent"),
        (("plan", "--topic", "a", "--conn-id", "nowhere", "--window", WINDOW), "InvalidRequest: connection 'nowhere'"),
        (("coverage", "--start", "soon"), "InvalidWindow: 'soon' is not a time"),
        (("plan", "pravega", "orders", "--window", WINDOW), "InvalidRequest: connection 'pravega_default' does not"),
        (("journal", "prune", "--older-than", "90"), "InvalidWindow: '90' is not a length of time"),
        (("journal", "prune", "--older-than", "1h"), "InvalidRequest: runs and plans are kept for a day at least"),
        (("config", "kafka"), "InvalidRequest: no stream system 'kafka'"),
        (("config", "--conn-id", "x"), "InvalidRequest: --conn-id belongs to one system"),
        (("config", "pulsar", "--conn-id", "nowhere"), "InvalidRequest: connection 'nowhere'"),
        ((*BACKFILL, "--dry-run", "--spark", "driver_memmory=4g"), "InvalidRequest: spark: there is no parameter"),
        ((*BACKFILL, "--dry-run", "--conf", "spark.a"), "InvalidRequest: --conf takes NAME=VALUE"),
    ],
)
def test_an_error_is_one_line_and_exit_code_1(streams, capsys, arguments, message):
    with pytest.raises(SystemExit) as ended:
        streams(*arguments)
    assert ended.value.code == 1
    (line,) = capsys.readouterr().err.strip().splitlines()
    assert line.startswith(message)


def test_declaring_the_commands_costs_every_airflow_command_nothing():
    code = (
        "import sys, airflow.cli.cli_config; before = set(sys.modules); "
        "import airflow_provider_streams.cli.parser as c; c.get_streams_cli_commands(); "
        "print(sorted(n for n in set(sys.modules) - before if not n.startswith('airflow_provider_streams')))"
    )
    ran = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert ran.stdout.splitlines()[-1] == "[]"


def test_cuts_are_recorded_listed_and_read_between(streams, no_spark, tmp_path, capsys):
    streams("cuts", "list")
    assert "no cut was ever recorded" in capsys.readouterr().out
    for number in (1, 2):
        streams("cuts", "record", "fake", "numbers", "--recorder", "me", "--output", "json")
        (row,) = json.loads(capsys.readouterr().out)
        assert row["sequence"] == number
    streams("cuts", "list", "--output", "json")
    (history,) = json.loads(capsys.readouterr().out)
    assert (history["source"], history["cuts"]) == ("fake:fake_default:numbers", 2)
    streams("cuts", "list", "fake", "numbers", "--output", "json")
    entries = json.loads(capsys.readouterr().out)
    assert [entry["recorder"] for entry in entries] == ["me", "me"]
    assert json.loads(entries[-1]["cut"]) == {"numbers-0": "60", "numbers-1": "60"}
    with pytest.raises(SystemExit):
        streams("cuts", "list", "fake", "numberz")
    assert "did you mean 'numbers'?" in capsys.readouterr().err
    streams("cuts", "list", "fake", "numbers")
    assert "sampled_from" in capsys.readouterr().out
    window = f"{entries[0]['sampled_from']}/{entries[1]['sampled_from']}"
    streams("plan", "fake", "numbers", "--window", window, "--basis", "append", "--output", "json")
    shown = json.loads(capsys.readouterr().out)
    assert (shown["basis"], len(shown["skew_seconds"])) == ("append", 2)


def test_cuts_of_both_systems_are_decoded(streams, capsys):
    from airflow_provider_streams.systems.pravega.metadata.stream_cut import StreamCut

    streams("cuts", "decode", "pravega", StreamCut("a/b", {5: 77, (2 << 32) + 6: 8}).to_text(), "--output", "json")
    assert json.loads(capsys.readouterr().out) == [
        {"stream": "a/b", "segment": "5.#epoch.0", "id": 5, "offset": 77},
        {"stream": "a/b", "segment": "6.#epoch.2", "id": (2 << 32) + 6, "offset": 8},
    ]
    streams("cuts", "decode", "pulsar", "31:4", "--output", "plain")
    assert capsys.readouterr().out.split() == ["ledger", "entry", "batch_index", "31", "4", "-1"]
    with pytest.raises(SystemExit):
        streams("cuts", "decode", "pravega", "nonsense")
    assert "InvalidRequest" in capsys.readouterr().err


def test_scaling_is_a_hint_for_pravega_alone(streams, capsys):
    with pytest.raises(SystemExit):
        streams("cuts", "list", "fake", "numbers", "--scaling")
    assert "only Pravega streams scale" in capsys.readouterr().err


@pytest.mark.parametrize("output", ["json", "yaml"])
def test_rows_and_documents_are_the_same_values_in_json_and_yaml(streams, capsys, output):
    from airflow.utils import yaml

    read = json.loads if output == "json" else yaml.safe_load
    streams("cuts", "decode", "pulsar", "31:4", "--output", output)
    assert read(capsys.readouterr().out) == [{"ledger": 31, "entry": 4, "batch_index": -1}]
    streams("plan", "fake", "numbers", "--window", WINDOW, "--slack", "0", "--output", output)
    assert read(capsys.readouterr().out)["end_cut"] == {"numbers-0": "10", "numbers-1": "10"}


def test_a_table_holds_names_and_long_texts_as_they_are(streams, capsys):
    """Airflow's console breaks lines, and reads `[..]` as markup and `:key:` as an emoji, unless it is set up."""
    name = "pulsar-key:key:[red]" + "x" * 300
    for _ in range(2):
        streams("cuts", "record", "fake", "numbers", "--recorder", name)
        assert name in capsys.readouterr().out
    for output in ("table", "plain"):
        streams("cuts", "list", "fake", "numbers", "--output", output)
        assert capsys.readouterr().out.count(name) == 2


def test_the_journal_is_pruned_by_age(streams, no_spark, tmp_path, capsys):
    streams("read", "fake", "numbers", "--window", WINDOW, "--slack", "0", "--path", str(tmp_path / "lake"))
    capsys.readouterr()
    streams("journal", "prune", "--older-than", "90d", "--dry-run")
    assert capsys.readouterr().out == "nothing older than 90d can be forgotten\n"
    streams("journal", "prune", "--older-than", "1d", "--output", "json")
    assert json.loads(capsys.readouterr().out) == []
