from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_streams.errors import SystemUnavailable
from airflow_provider_streams.journal.store import Journal
from airflow_provider_streams.model.stream.cut import Cut
from airflow_provider_streams.model.stream.position import Position
from airflow_provider_streams.testing.fake import FakeSource, FakeSystem
from airflow_provider_streams.windows.plan.cut_recording import next_tick, record, sample

NOW = datetime(2026, 11, 20, 10, 0, 30, tzinfo=UTC)


def test_ticks_lie_on_full_multiples_so_that_windows_start_at_one():
    minute = timedelta(minutes=1)
    assert next_tick(NOW, minute) == NOW.replace(minute=1, second=0)
    assert next_tick(NOW.replace(second=0), minute) == NOW.replace(minute=1, second=0), "never the same one again"


@given(st.datetimes(datetime(2020, 1, 1), datetime(2040, 1, 1), timezones=st.just(UTC)), st.integers(1, 86400))  # noqa: DTZ001
def test_the_next_tick_is_later_by_an_interval_at_most(now, seconds):
    assert now < next_tick(now, timedelta(seconds=seconds)) <= now + timedelta(seconds=seconds)


def test_a_sample_names_the_time_before_it_began():
    before = datetime.now(UTC)
    taken = sample(FakeSystem({"events": "7", "shards": "1"}), FakeSource("s"))
    assert before <= taken.sampled_from <= taken.sampled_to
    assert taken.cut == Cut({"s-0": Position.of(7)})


@pytest.mark.parametrize("order", [("bad", "good"), ("good", "bad")])
def test_a_source_that_fails_stops_no_other_recording(tmp_path, order):
    sources = {name: FakeSource("s", conn_id=name) for name in order}
    systems = {"good": FakeSystem({}), "bad": FakeSystem({"truth": str(tmp_path / "missing")})}
    with Journal(f"sqlite:///{tmp_path / 'journal.db'}") as journal:
        results = {one.source.conn_id: one for one in record(journal, systems, sources.values(), "r")}
        assert isinstance(results["bad"].error, SystemUnavailable)
        assert results["good"].sequence == 1
        assert [history.source_key for history in journal.cut_histories()] == ["fake:good:s"]
