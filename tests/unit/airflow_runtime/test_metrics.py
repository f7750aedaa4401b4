from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from airflow_provider_streams.airflow_runtime import metrics
from airflow_provider_streams.model.stream.retention import Holding, Verdict
from airflow_provider_streams.systems.pulsar.source import PulsarSource
from tests.unit.airflow_runtime.test_openlineage import make


@pytest.fixture
def sent(monkeypatch):
    figures = {}
    for kind in ("incr", "gauge", "timing"):
        monkeypatch.setattr(
            metrics.Stats, kind, lambda name, value, tags: figures.__setitem__(name, (value, tags)), raising=True
        )
    return figures


def test_a_covered_window_gives_its_figures(sent):
    ((_, plan, landed),) = make()
    metrics.covered("pulsar:c:a,b", plan, landed, plan.window.end + timedelta(minutes=5))
    assert {name: value for name, (value, _) in sent.items()} == {
        "streams.windows": 1,
        "streams.rows": 6,
        "streams.written": 6,
        "streams.bytes": 30,
        "streams.read": timedelta(seconds=1),
        "streams.lag_seconds": 300.0,
    }


def test_rows_that_a_transform_left_out_are_no_written_ones(sent):
    ((_, plan, landed),) = make()
    metrics.covered("pulsar:c:a,b", plan, replace(landed, written=2))
    assert (sent["streams.rows"][0], sent["streams.written"][0]) == (6, 2)


def test_rows_that_were_not_counted_are_no_figure(sent):
    ((_, plan, landed),) = make()
    metrics.covered("pulsar:c:a,b", plan, replace(landed, written=None))
    assert "streams.written" not in sent


def test_events_that_could_not_be_decoded_are_figures_where_there_are_any(sent):
    ((_, plan, landed),) = make()
    receipt = landed.receipt
    split = replace(receipt.splits[0], quarantined=3, dropped=2)
    metrics.covered(
        "pulsar:c:a,b", plan, replace(landed, receipt=replace(receipt, splits=(split, *receipt.splits[1:])))
    )
    assert (sent["streams.quarantined"][0], sent["streams.dropped"][0]) == (3, 2)
    assert sent["streams.quarantined"][1] == {"system": "pulsar", "source": "pulsar_c_a_b", "reader": "d.read"}
    metrics.replayed(PulsarSource("a"), "d.read", 3)
    assert sent["streams.replayed"][0] == 3


def test_tags_cannot_break_the_line_they_are_sent_in(sent):
    ((_, plan, landed),) = make()
    metrics.covered("pulsar:c:a,b=1|#", plan, landed)
    tags = sent["streams.rows"][1]
    assert tags == {"system": "pulsar", "source": "pulsar_c_a_b_1__", "reader": "d.read"}
    assert sent["streams.windows"][1]["verdict"] == "complete"


def test_the_room_of_retention_is_a_figure(sent):
    verdict = Verdict("low", timedelta(hours=3), timedelta(hours=4), timedelta(hours=1))
    metrics.guarded(PulsarSource("orders"), None, verdict, Holding(None))
    assert sent.keys() == {"streams.retention_room_seconds"}
    assert sent["streams.retention_room_seconds"][0] == 3600


def test_a_metrics_client_that_fails_fails_no_read(monkeypatch, caplog):
    def broken(*_, **__):
        raise OSError("token-5d2c")

    monkeypatch.setattr(metrics.Stats, "incr", broken)
    ((_, plan, landed),) = make()
    metrics.covered("k", plan, landed)
    assert "could not be sent: OSError" in caplog.text
    assert "token-5d2c" not in caplog.text
