"""`airflow streams quarantine list | show | replay`."""

from __future__ import annotations

import json

import pytest

SCHEMA = "n long, shard string"
WINDOWS = [f"2026-11-20T10:0{n}:00Z/2026-11-20T10:0{n + 1}:00Z" for n in range(2)]
SPAN = ("--start", "2026-11-20T10:00Z", "--end", "2026-11-20T10:02Z")
REPLAY = ("quarantine", "replay", "fake", "numbers")


@pytest.fixture
def landed(streams, no_spark, tmp_path, monkeypatch, capsys):
    """Two windows of 120 events: every 20th is torn, and every 6th has no `shard`, which it must have."""
    facts = {"events": 120, "records": 1, "torn_every": 20, "bare_every": 6}
    connection = {"conn_type": "fake", "extra": {name: str(value) for name, value in facts.items()}}
    monkeypatch.setenv("AIRFLOW_CONN_FAKE_DEFAULT", json.dumps(connection))
    how = ("--slack", "0", "--path", str(tmp_path / "lake"), "--on-decode-error", "quarantine")
    strict = ("--value-format", "json", "--value-schema", f"{SCHEMA} not null")
    for window in WINDOWS:
        streams("read", "fake", "numbers", "--window", window, *how, *strict)
    capsys.readouterr()


def rows(streams, capsys, *arguments):
    streams(*arguments, "--output", "json")
    return json.loads(capsys.readouterr().out)


def test_windows_are_listed_with_their_causes(streams, landed, capsys):
    found = rows(streams, capsys, "quarantine", "list")
    assert {row["window"] for row in found} == set(WINDOWS)
    assert sum(row["events"] for row in found) == 2 * 2 * 12
    assert {row["reader"] for row in found} == {"cli"}
    assert len({row["cause"] for row in found}) >= 2
    assert rows(streams, capsys, "quarantine", "list", "--start", "2026-11-20T10:01Z") == [
        row for row in found if row["window"] == WINDOWS[1]
    ]
    with pytest.raises(SystemExit):
        streams("quarantine", "list", "--reader", "other")
    assert "knows no reader 'other'; known: cli" in capsys.readouterr().err
    streams("quarantine", "list")
    assert "shard" in capsys.readouterr().out


def test_events_are_shown_with_place_cause_and_first_bytes(streams, landed, capsys):
    found = rows(streams, capsys, "quarantine", "show", "--window", WINDOWS[1], "--limit", "3")
    assert [(row["shard"], row["position"]) for row in found] == [("numbers-0", str(n)) for n in (65, 71, 77)]
    assert found[0]["text"] == '{"n": 65}'
    assert bytes.fromhex(found[0]["hex"]) == b'{"n": 65}'
    assert found[0]["bytes"] == 9
    with pytest.raises(SystemExit):
        streams("quarantine", "show", "--window", WINDOWS[1], "--reader", "nightly2")
    assert "knows no reader 'nightly2'; known: cli" in capsys.readouterr().err


def test_a_replay_says_what_it_did_and_coverage_follows(streams, landed, capsys):
    streams("coverage", *SPAN, "--offline")
    shown = capsys.readouterr().out
    assert f"?? {WINDOWS[0]}: 24 quarantined: they could not be decoded" in shown
    streams(*REPLAY, "--value-format", "json", "--value-schema", SCHEMA, "--window", WINDOWS[0])
    said = f"{WINDOWS[0]}: 18 events became rows, 6 cannot be decoded (one of them: the value: is not JSON)\n"
    assert capsys.readouterr().out == said
    # that was said of these events: the reader itself decodes as before
    (_, second) = rows(streams, capsys, *REPLAY)
    assert (second["rows"], second["left"]) == (0, 24)
    assert second["cause"]
    assert rows(streams, capsys, *REPLAY, "--value-format", "json", "--value-schema", SCHEMA)[1:] == [
        {
            "start": "2026-11-20T10:01:00Z",
            "end": "2026-11-20T10:02:00Z",
            "rows": 18,
            "left": 6,
            "cause": "the value: is not JSON",
        }
    ]
    (seen,) = rows(streams, capsys, "coverage", *SPAN, "--offline")
    assert (seen["rows"], seen["quarantined"], seen["dropped"]) == (240 - 12, 12, 0)
    assert seen["counts"]["covered"] == 2


def test_nothing_is_replayed_where_nothing_is_kept_aside(streams, landed, capsys):
    streams(*REPLAY, "--value-format", "json", "--value-schema", SCHEMA, "--start", "2026-11-20T11:00Z")
    assert "no window has events" in capsys.readouterr().out


def test_a_table_that_is_not_here_is_said(streams, landed, tmp_path, capsys):
    (tmp_path / "lake").rename(tmp_path / "elsewhere")
    found = rows(streams, capsys, "quarantine", "list")
    assert [row["events"] for row in found] == [24, 24]
    assert all("not seen from here" in row["cause"] for row in found)
