"""`airflow streams backfill`: its exit code, for people and for programs."""

from __future__ import annotations

import json

import pytest

SPAN = ("--start", "2026-11-20T10:00Z", "--end", "2026-11-20T10:00:40Z", "--window-length", "10s")


@pytest.fixture
def torn(monkeypatch):
    """Of four windows, the last one has events that cannot be decoded."""
    extra = {"events": "40", "records": "1", "torn_every": "35"}
    monkeypatch.setenv("AIRFLOW_CONN_FAKE_DEFAULT", json.dumps({"conn_type": "fake", "extra": extra}))


@pytest.mark.usefixtures("no_spark", "torn")
@pytest.mark.parametrize("output", ["table", "json"])
def test_a_backfill_with_a_failed_window_ends_with_1(streams, tmp_path, capsys, output):
    decoded = ("--value-format", "json", "--value-schema", "n long", "--on-decode-error", "fail")
    where = ("--slack", "0", "--path", str(tmp_path / "lake"), "--max-windows", "1")
    with pytest.raises(SystemExit) as ended:
        streams("backfill", "fake", "numbers", *SPAN, *where, *decoded, "--output", output)
    assert ended.value.code == 1
    assert "BackfillIncomplete" in capsys.readouterr().err
