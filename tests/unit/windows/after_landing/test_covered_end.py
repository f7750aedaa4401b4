"""How far a reader's windows are covered without a break: holds move there, and not an event further."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from airflow_provider_streams.model.window.window import Window
from airflow_provider_streams.testing.fake import EPOCH, FakeSource
from airflow_provider_streams.windows.after_landing.covered_end import _next_start, covered_end

MINUTE = timedelta(minutes=1)
KEY = FakeSource("numbers").key


def minute(number):
    return Window(EPOCH + number * MINUTE, EPOCH + (number + 1) * MINUTE)


class SparkDied(Exception):
    pass


def fail(world, number, **how):
    def die(_spec):
        raise SparkDied

    world.before = die
    with pytest.raises(SparkDied):
        world.read(minute(number), **how)
    world.before = lambda _spec: None


def end(world, since=None, reader="reader"):
    """The last window of the row; None: there is none."""
    found = covered_end(world.journal, KEY, reader, since)
    if found is None:
        return None
    assert found.plan == world.journal.pinned(KEY, reader, found.window).fingerprint
    assert found.time == found.window.end
    return found.window


def test_what_is_covered_without_a_gap_ends_before_the_first_window_that_is_not(world):
    assert end(world) is None
    fail(world, 3)
    assert end(world) is None
    world.read(minute(2))
    assert end(world) == minute(2)
    world.read(minute(4))
    assert end(world) == minute(2), "window 3 is still unread"
    world.read(minute(3))
    assert end(world) == minute(4)
    world.read(minute(6))
    assert end(world) == minute(4), "5 was never tried"
    assert end(world, reader="another reader") is None


def test_by_event_time_the_next_window_may_begin_anywhere_after_the_start_of_the_last_one(world):
    """Where times can be looked up, they are: also of partitions that were made since."""
    world.read(minute(2), basis="event")
    assert covered_end(world.journal, KEY, "reader", None).cut is None
    plan = world.journal.pinned(KEY, "reader", minute(2))
    elsewhere = replace(plan, source=replace(plan.source, system="pravega"))
    for rows in (plan.filter, None):
        assert _next_start(replace(elsewhere, filter=rows)) == plan.start_cut != plan.end_cut
    assert _next_start(replace(elsewhere, basis="append", filter=None)) == plan.end_cut


def test_a_window_that_was_planned_and_never_read_breaks_the_row(world):
    """A dry run pins: a later read of that window still needs its events."""
    world.read(minute(0))
    world.read(minute(1), dry_run=True)
    world.read(minute(2))
    assert end(world) == minute(0)
    world.read(minute(1))
    assert end(world) == minute(2)


def test_a_first_window_that_was_planned_and_never_read_holds_everything(world):
    world.read(minute(0), dry_run=True)
    world.read(minute(1))
    assert end(world) is None


def test_a_window_whose_replan_failed_before_it_touched_the_table_stays_in_the_row(world):
    world.read(minute(0))
    world.read(minute(1))
    fail(world, 1, replan=True)
    assert end(world) == minute(1)


def test_a_window_whose_replan_was_killed_breaks_the_row(world, monkeypatch):
    """A killed process does not record how far it came."""
    world.read(minute(0))
    world.read(minute(1))
    monkeypatch.setattr(world.journal, "fail_run", lambda *_, **__: None)
    fail(world, 1, replan=True)
    assert end(world) == minute(0)


def test_blank_time_breaks_the_row_where_it_began(world):
    world.read(minute(3))
    world.read(minute(4))
    assert end(world) == minute(4)
    assert end(world, since=minute(3).start) == minute(4)
    assert end(world, since=minute(2).start) is None, "the time before was not read"
    assert end(world, since=minute(4).end) is None, "all of that was before"


def test_what_a_chain_left_out_breaks_nothing(world):
    """A later window took the place of one that never came: its events are in the table."""
    world.hold(events=60)
    world.read(minute(0), basis="chained")
    fail(world, 1, basis="chained")
    world.hold(events=180)
    world.read(minute(2), basis="chained", replan=True)
    assert end(world) == minute(2)


def test_rows_of_another_table_count_no_more(world):
    world.read(minute(0))
    world.read(minute(1))
    world.read(minute(1), sink="other", full_refresh=True)
    assert end(world) is None, "minute 0 is to be landed again, so it is needed still"


def test_the_next_window_starts_at_the_cut_only_where_rows_are_not_chosen_by_time(world):
    world.read(minute(0), reader="by time")
    assert covered_end(world.journal, KEY, "by time", None).cut is None
    world.hold(events=60)
    world.read(minute(0), basis="chained", reader="by place", sink="chain")
    found = covered_end(world.journal, KEY, "by place", None)
    assert found.cut == world.journal.pinned(KEY, "by place", minute(0)).end_cut
