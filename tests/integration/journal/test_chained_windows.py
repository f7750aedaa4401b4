"""Chained windows: the database keeps their order, so that each goes on where the one before it ended."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import timedelta
from itertools import pairwise

import pytest

from airflow_provider_streams.errors import PlanMismatch
from airflow_provider_streams.journal.chained_windows import Chain
from airflow_provider_streams.journal.runs.run_records import TaskInstanceKey
from airflow_provider_streams.journal.store import Journal
from airflow_provider_streams.model.plan.plan import Plan
from airflow_provider_streams.model.plan.receipt import SplitReceipt, compare
from airflow_provider_streams.model.sinks.landing import Landed
from airflow_provider_streams.model.window.window import Window

KEY = "pulsar:pulsar_default:persistent://shop/orders/events"
READER = "dag.read"
TASK = TaskInstanceKey("dag", "manual__1", "read", 1)
BLANK = Chain(None, (), (), None)


@dataclass
class Links:
    """What a chained reader does with its windows; plans end at the tail `end`."""

    journal: Journal
    plan_of: Callable[..., Plan]
    hour: Callable[[int], Window]

    def seen(self, number: int) -> Chain:
        return self.journal.chain(KEY, READER, self.hour(number))

    def plan(self, number: int, end: int, seen: Chain) -> Plan:
        """Of an hour, from where the chain was seen to end."""
        plan = self.plan_of(self.hour(number), 0, end)
        if seen.before is None:
            return replace(plan, basis="chained")
        start = seen.before.plan.end_cut
        first = next(iter(start.values())).parts[1]
        return replace(self.plan_of(self.hour(number), first, end), basis="chained")

    def pin(self, number: int, end: int, *, seen: Chain | None = None, replan: bool = False) -> Plan | None:
        seen = seen or self.seen(number)
        return self.journal.pin_chained(KEY, self.plan(number, end, seen), seen, replan=replan)

    def start(self, plan: Plan) -> int:
        return self.journal.start_run(KEY, plan, TASK).run

    def cover(self, number: int, end: int, **how: bool) -> Plan:
        plan = self.pin(number, end, **how)
        self.finish(self.start(plan), plan)
        return plan

    def finish(self, run: int, plan: Plan) -> None:
        self.journal.finish_run(run, Landed(compare(plan, [SplitReceipt(0, rows=5)], seconds=1)))

    def fail(self, number: int, end: int) -> Plan:
        plan = self.pin(number, end)
        self.journal.fail_run(self.start(plan), "SinkError", "disk full")
        return plan


@pytest.fixture
def links(journal, plan_of, hour):
    return Links(journal, plan_of, hour)


def test_the_first_window_of_a_chain_stands_alone(links):
    assert links.seen(0) == BLANK
    assert links.pin(0, 10) == links.journal.pinned(KEY, READER, links.hour(0))


def test_a_window_goes_on_behind_the_covered_one(links):
    first = links.cover(0, 10)
    seen = links.seen(1)
    assert (seen.before.plan, seen.open, seen.running, seen.later) == (first, (), (), None)
    assert links.cover(1, 20).start_cut == first.end_cut


def test_what_was_planned_before_and_is_not_covered_is_open(links):
    first = links.cover(0, 10)
    links.pin(1, 20)
    assert links.seen(2).open == (links.hour(1),)
    assert links.seen(2).before.plan == first
    links.fail(1, 20)
    assert links.seen(3).open == (links.hour(1),)
    links.cover(1, 20)
    assert links.seen(3).open == ()


def test_who_reads_an_open_window_is_seen(links):
    plan = links.pin(0, 10)
    run = links.start(plan)
    assert links.seen(1).running == (links.hour(0),)
    links.journal.fail_run(run, "SinkError", "disk full")
    assert links.seen(1).running == ()
    assert links.seen(1).open == (links.hour(0),)


@pytest.mark.parametrize("later", [2, 7])
def test_a_later_window_is_seen_even_if_it_was_only_planned(links, later):
    links.cover(0, 10)
    links.pin(later, 20)
    assert links.seen(1).later == links.hour(later)
    assert links.seen(later).later is None, "its own plan is none"


def test_a_window_that_shares_time_with_the_asked_one_is_later(links):
    links.pin(0, 10)
    longer = Window(links.hour(0).start, links.hour(1).end)
    assert links.journal.chain(KEY, READER, longer).later == links.hour(0)


def test_chains_of_other_readers_and_sources_are_none_of_it(links):
    links.cover(0, 10)
    assert links.journal.chain(KEY, "another reader", links.hour(1)) == BLANK
    assert links.journal.chain("another source", READER, links.hour(1)) == BLANK


def test_nothing_is_pinned_when_the_chain_moved_since_it_was_looked_at(links):
    seen = links.seen(1)
    links.cover(0, 10)
    assert links.pin(1, 20, seen=seen) is None
    assert links.journal.pinned(KEY, READER, links.hour(1)) is None
    seen = links.seen(2)
    links.pin(1, 20)
    assert links.pin(2, 30, seen=seen) is None
    seen = links.seen(2)
    links.start(links.journal.pinned(KEY, READER, links.hour(1)))
    assert links.pin(2, 30, seen=seen, replan=True) is None, "another run has begun to read what it would replace"


def test_the_first_pin_of_a_window_wins(links):
    seen = links.seen(0)
    first = links.pin(0, 10, seen=seen)
    assert links.pin(0, 15, seen=seen) == first


def test_of_plans_of_one_window_at_once_one_is_pinned_and_all_get_it(links, at_once):
    links.cover(0, 10)
    answers = at_once(12, lambda number: links.pin(1, 20 + number).fingerprint)
    assert set(answers) == {links.journal.pinned(KEY, READER, links.hour(1)).fingerprint}


def test_of_two_windows_planned_at_once_only_one_goes_on_behind_the_covered_one(links, at_once):
    """Each has looked before the other pinned: both would begin at the same place."""
    links.cover(0, 10)
    seen = {number: links.seen(number) for number in (1, 2)}
    pinned = at_once(2, lambda number: links.pin(number + 1, 20, seen=seen[number + 1]) is not None)
    assert sorted(pinned) == [False, True]


def test_runs_whenever_they_come_leave_a_chain_without_a_hole(links, at_once):
    """Two tasks for each of four windows, each of which tries until it is its turn."""

    def read(number):
        while True:
            seen = links.seen(number)
            if number and (seen.before is None or seen.before.plan.window != links.hour(number - 1)):
                continue
            plan = links.journal.pinned(KEY, READER, links.hour(number)) or links.pin(
                number, 10 * number + 10, seen=seen
            )
            if plan is not None:
                return links.finish(links.start(plan), plan)

    at_once(8, lambda process: read(process % 4))
    plans = [links.journal.pinned(KEY, READER, links.hour(number)) for number in range(4)]
    for before, after in pairwise(plans):
        assert after.start_cut == before.end_cut
    assert links.journal.coverage(KEY, READER, links.hour(0).start, links.hour(3).end).is_complete


def test_a_window_takes_the_place_of_open_ones_only_on_purpose(links):
    first = links.cover(0, 10)
    given_up = links.fail(1, 20)
    taken = links.pin(2, 30, replan=True)
    assert taken.start_cut == first.end_cut
    assert links.journal.pinned(KEY, READER, links.hour(1)) is None
    with pytest.raises(PlanMismatch, match="none is"):
        links.start(given_up)
    links.finish(links.start(taken), taken)
    seen = links.seen(3)
    assert (seen.before.plan, seen.open) == (taken, ())


def test_time_between_two_links_is_covered_with_the_later_one(links):
    links.cover(0, 10)
    links.fail(1, 20)
    links.cover(4, 30, replan=True)
    span = (links.hour(0).start, links.hour(4).end)
    between = Window(links.hour(1).start, links.hour(3).end)
    seen = links.journal.coverage(KEY, READER, *span, timedelta(hours=1))
    assert [(item.window, item.state) for item in seen.windows] == [
        (links.hour(0), "covered"),
        (between, "covered"),
        (links.hour(4), "covered"),
    ]
    assert seen.windows[1].cause == f"read with {links.hour(4)}"
    inside = links.journal.coverage(KEY, READER, links.hour(2).start, links.hour(2).end)
    assert inside.is_complete, "whatever part of it is asked for"
    assert links.journal.coverage(KEY, READER, links.hour(5).start, links.hour(5).end).gaps


def test_time_before_a_link_that_is_not_covered_is_a_gap(links):
    links.cover(0, 10)
    links.fail(3, 20)
    seen = links.journal.coverage(KEY, READER, links.hour(0).start, links.hour(3).end, timedelta(hours=1))
    assert [item.state for item in seen.windows] == ["covered", "missing", "missing", "failed"]


def test_a_plan_whose_predecessor_was_planned_anew_is_not_read(links):
    links.cover(0, 10)
    second = links.pin(1, 20)
    links.journal.replan(KEY, replace(links.plan_of(links.hour(0), 0, 13), basis="chained"))
    with pytest.raises(PlanMismatch, match="goes on where the window before it ended"):
        links.start(second)


def test_a_run_of_a_plan_that_became_void_covers_nothing(links):
    """It was taken for dead: a second run of its window began, and failed."""
    plan = links.pin(0, 10)
    slow, quick = links.start(plan), links.start(plan)
    links.journal.fail_run(quick, "SinkError", "disk full")
    links.cover(1, 20, replan=True)
    with pytest.raises(PlanMismatch, match="took the place"):
        links.finish(slow, plan)
    links.journal.fail_run(slow, "PlanMismatch", "a later window took the place")
    assert links.journal.coverage(KEY, READER, links.hour(0).start, links.hour(0).end).counts["covered"] == 0


def test_a_void_window_may_be_planned_again_when_nothing_later_is_in_its_way(links):
    """Say its basis was changed, and the reader landed everything again."""
    links.fail(0, 10)
    links.pin(1, 20, replan=True)
    assert links.journal.pinned(KEY, READER, links.hour(0)) is None
    fresh = links.plan_of(links.hour(0), 0, 12)
    assert links.journal.pin(KEY, fresh) == fresh
    assert links.journal.pinned(KEY, READER, links.hour(0)) == fresh
