from __future__ import annotations

import json

import pytest

from airflow_provider_streams.testing.fake.server_state import value_of


def shown(capsys):
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def test_as_many_events_of_each_shard_where_none_has_a_time(streams, capsys):
    streams("tail", "fake", "numbers", "-n", "5", "--json")
    events = [("numbers-0", 58), ("numbers-0", 59), ("numbers-1", 57), ("numbers-1", 58), ("numbers-1", 59)]
    assert [(one["_shard"], one["_number"]) for one in shown(capsys)] == events
    streams("tail", "fake", "numbers", "-n", "1000", "--json")
    everything = [(f"numbers-{shard}", number) for shard in (0, 1) for number in range(60)]
    assert [(one["_shard"], one["_number"]) for one in shown(capsys)] == everything


def test_undecoded_values_are_base64(streams, capsys):
    streams("tail", "fake", "numbers", "-n", "1", "--json", "--value-format", "bytes")
    (event,) = shown(capsys)
    assert event["_number"] == 59
    assert event["_shard"] == "numbers-1"


def test_a_condition_goes_back_as_far_as_it_must(streams, capsys):
    streams("tail", "fake", "numbers", "-n", "2", "--json", "--value-format", "bytes", "--where", "_number < 3")
    assert [one["_number"] for one in shown(capsys)] == [2, 2]


@pytest.mark.parametrize("values", [(), ("--value-format", "bytes")])
def test_a_condition_names_columns_as_json_does(streams, capsys, values):
    streams("tail", "fake", "numbers", "-n", "1", "--json", *values)
    (event,) = shown(capsys)
    metadata = {name: value for name, value in event.items() if name not in ("value", "value_base64")}
    assert {"_shard", "_number", "_publish_time", "_properties"} <= metadata.keys()
    plain = {name: value for name, value in metadata.items() if isinstance(value, str | int)}
    assert {"_shard", "_number", "_publish_time"} <= plain.keys()
    condition = " and ".join(f"{name} == {value!r}" for name, value in plain.items())
    condition += "".join(f" and ({name} is None or {name} is not None)" for name in metadata)
    streams("tail", "fake", "numbers", "-n", "5", "--json", *values, "--where", f"value is not None and {condition}")
    assert shown(capsys) == [event]


def test_lines_are_for_people(streams, capsys):
    streams("tail", "fake", "numbers", "-n", "1")
    out = capsys.readouterr().out
    assert "numbers-1  59  " in out


def test_a_source_without_events_says_so(streams, capsys, monkeypatch):
    connection = {"conn_type": "fake", "extra": {"events": "0"}}
    monkeypatch.setenv("AIRFLOW_CONN_FAKE_DEFAULT", json.dumps(connection))
    streams("tail", "fake", "numbers")
    printed = capsys.readouterr()
    assert (printed.out, printed.err.strip()) == ("", "numbers holds no event")


@pytest.mark.parametrize("option", [("-n", "-1"), ("--max-bytes", "0"), ("--interval", "0"), ("--where", "x ==")])
def test_options_that_make_no_sense_are_rejected(streams, option, capsys):
    with pytest.raises(SystemExit):
        streams("tail", "fake", "numbers", *option)
    assert "InvalidRequest" in capsys.readouterr().err


def test_values_of_the_fake_are_what_is_shown(streams, capsys):
    streams("tail", "fake", "numbers", "-n", "1")
    assert value_of("numbers-1", 59, 100).decode("ascii", "replace")[:5] in capsys.readouterr().out
