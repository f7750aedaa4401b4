"""Of a source that does not exist no cut is waited for: a sensor would wait without end."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from airflow_provider_streams.errors import (
    SourceDeleted,
    SourceNotFound,
    SourceReplaced,
    StreamsError,
    SystemUnavailable,
    WindowNotReady,
)
from airflow_provider_streams.journal.store import Journal
from airflow_provider_streams.model.stream.cut import Cut
from airflow_provider_streams.model.stream.position import Position
from airflow_provider_streams.model.window.window import Window
from airflow_provider_streams.testing.fake import FakeSource
from airflow_provider_streams.windows.plan.readiness import edges_of

SOURCE, HOUR = FakeSource("numbers"), timedelta(hours=1)
START = datetime(2026, 11, 20, 10, tzinfo=UTC)
WINDOW = Window(START, START + HOUR)


class System:
    def __init__(self, error: StreamsError | None = None) -> None:
        self.error, self.asked = error, 0
        self.found = ""

    def tail(self, _source: FakeSource) -> None:
        self.asked += 1
        if self.error:
            raise self.error

    def other_incarnation(self, source: FakeSource, _incarnation: object) -> SourceReplaced | None:
        return SourceReplaced(source, "the stream of the cut", self.found) if self.found else None


@pytest.fixture
def journal(tmp_path):
    with Journal.open(f"sqlite:///{tmp_path / 'journal.db'}") as opened:
        yield opened


def record(journal, moment, at=0):
    journal.record_cut(SOURCE.key, Cut({"a": Position.of(at)}), sampled_from=moment, sampled_to=moment, recorder="r")


def edges(journal, error=None):
    return edges_of(journal, System(error), SOURCE, WINDOW, HOUR)


def test_a_source_without_cuts_that_does_not_exist_is_not_found(journal):
    with pytest.raises(SourceNotFound, match="numbers"):
        edges(journal, SourceNotFound("numbers"))


def test_a_source_that_no_longer_exists_gets_no_cut(journal):
    record(journal, START)
    with pytest.raises(SourceDeleted, match=r"numbers: window 2026-11-20T10:00:00Z.*recorded at 2026-11-20T10:00:00"):
        edges(journal, SourceNotFound("numbers"))
    record(journal, WINDOW.end, 5)
    assert edges(journal, SourceNotFound("numbers")).end.cut == Cut({"a": Position.of(5)}), "the read tells"


def test_a_source_that_was_made_again_gets_no_cut_until_that_is_confirmed(journal):
    record(journal, START)
    system = System(None)
    system.found = "another stream"
    with pytest.raises(SourceDeleted, match=r"made again since: now there is another stream.* --start-over") as caught:
        edges_of(journal, system, SOURCE, WINDOW, HOUR)
    assert not caught.value.retryable


def test_a_source_that_is_there_is_waited_for_and_other_trouble_is_left_to_the_recorder(journal):
    record(journal, START)
    for error in (None, SystemUnavailable("fake", "silent")):
        with pytest.raises(WindowNotReady):
            edges(journal, error)
