"""What a reader lands: one landing counts, and only runs under it cover windows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import timedelta

import pytest

from airflow_provider_streams.errors import PlanMismatch, RowCountDecreased, WindowsOverlap
from airflow_provider_streams.journal.landings import NewLanding
from airflow_provider_streams.journal.runs.run_records import Announcer, TaskInstanceKey
from airflow_provider_streams.journal.store import Journal
from airflow_provider_streams.journal.tables import landings
from airflow_provider_streams.model.plan.plan import Loss, Plan
from airflow_provider_streams.model.plan.receipt import SplitReceipt, compare
from airflow_provider_streams.model.sinks.landing import Held, Landed, Landing
from airflow_provider_streams.model.sinks.sink import ParquetSink
from airflow_provider_streams.model.window.window import Window

HOUR = timedelta(hours=1)
KEY = "pulsar:pulsar_default:persistent://shop/orders/events"
READER = "dag.read"
TASK = TaskInstanceKey("dag", "manual__1", "read", 1)


def landing(name: str, window_schedule: str | None = "1h", basis: str | None = "publish") -> NewLanding:
    return NewLanding(Landing(ParquetSink(f"/lake/{name}")).to_json(), window_schedule, basis)


def covered(plan, rows=5, schema=None) -> Landed:
    return Landed(compare(plan, [SplitReceipt(0, rows=rows, bytes=rows * 100)], seconds=1), rows, schema)


@pytest.fixture
def orders(journal):
    """The reader lands in a table."""
    return journal.land_as(KEY, READER, landing("orders"), after=None)


@dataclass
class Reads:
    """What a reader does with its windows."""

    journal: Journal
    plan_of: Callable[..., Plan]
    hour: Callable[[int], Window]

    def cover(self, window, kept, *, first=0, end=10, rows=5, schema=None, **how):
        """Lands a window as a task would, under a landing; the run's number."""
        plan = self.journal.pin(KEY, self.plan_of(window, first, end))
        started = self.journal.start_run(KEY, plan, TASK, landing_id=kept.id if kept else None, **how)
        self.journal.finish_run(started.run, covered(plan, rows, schema))
        return started.run

    def states(self, first=0, last=0):
        """Of these hours, with their causes."""
        seen = self.journal.coverage(KEY, READER, self.hour(first).start, self.hour(last).end)
        return [(item.state, item.cause) for item in seen.windows]


@pytest.fixture
def reads(journal, plan_of, hour):
    return Reads(journal, plan_of, hour)


# One landing counts


def test_a_landing_is_kept_as_it_was_given(journal, orders):
    assert journal.landing(KEY, READER) == orders
    assert (orders.generation, orders.window_schedule, orders.basis, orders.columns) == (1, "1h", "publish", None)
    assert (orders.landing, orders.target) == (dict(landing("orders").landing), "file:///lake/orders")
    assert journal.landing(KEY, "another reader") is None
    assert journal.landing("unheard of", READER) is None


def test_tables_that_are_made_anew_have_marks_of_their_own(journal, orders):
    again = journal.land_as(KEY, READER, landing("orders"), after=orders)
    assert again.generation == 2
    assert again.table_id != orders.table_id
    assert journal.landing(KEY, READER) == again


def test_who_knows_an_older_landing_gets_the_one_that_replaced_it(journal, orders):
    second = journal.land_as(KEY, READER, landing("second"), after=orders)
    assert journal.land_as(KEY, READER, landing("third"), after=orders) == second
    assert journal.land_as(KEY, READER, landing("first"), after=None) == second


@pytest.mark.parametrize("known", [False, True])
def test_of_landings_at_once_one_counts_and_all_get_it(url, at_once, all_insert_at_once, known):
    with Journal.open(url) as journal:
        before = journal.land_as(KEY, READER, landing("before"), after=None) if known else None
    all_insert_at_once(landings, 12)

    def land(number):
        with Journal.open(url) as journal:
            return journal.land_as(KEY, READER, landing(f"of {number}"), after=before)

    answers = at_once(12, land)

    with Journal.open(url) as journal:
        kept = journal.landing(KEY, READER)
    assert answers == [kept] * 12
    assert kept.generation == (2 if known else 1)
    assert kept.target in {f"file:///lake/of%20{number}" for number in range(12)}


def test_a_landing_under_which_nothing_lies_is_corrected(journal, orders, reads, hour, plan_of):
    plan = journal.pin(KEY, plan_of(hour()))
    failed = journal.start_run(KEY, plan, TASK, landing_id=orders.id)
    assert journal.is_landed(orders)
    assert journal.correct_landing(KEY, READER, orders, landing("other")) is None, "another run reads for it"
    journal.fail_run(failed.run, "TransformFailed", "a typo")

    corrected = journal.correct_landing(KEY, READER, orders, landing("other", "2h", "append"))
    assert (corrected.generation, corrected.table_id) == (2, orders.table_id)
    assert (corrected.target, corrected.window_schedule, corrected.basis) == ("file:///lake/other", "2h", "append")
    assert journal.landing(KEY, READER) == corrected
    with pytest.raises(PlanMismatch, match="lands in file:///lake/other since a moment ago"):
        journal.start_run(KEY, plan, TASK, landing_id=orders.id)

    reads.cover(hour(), corrected)
    assert journal.is_landed(corrected)
    assert journal.correct_landing(KEY, READER, corrected, landing("third")) is None
    assert journal.correct_landing(KEY, READER, orders, landing("third")) is None, "an older one"
    assert journal.correct_landing("unheard of", READER, orders, landing("third")) is None


def test_of_corrections_at_once_one_counts(journal, orders, at_once):
    answers = at_once(8, lambda number: journal.correct_landing(KEY, READER, orders, landing(f"of {number}")))
    assert [answer for answer in answers if answer] == [journal.landing(KEY, READER)]


def test_adopting_fills_in_only_what_was_not_known(journal):
    assert journal.adopt_landing(KEY, READER, landing("orders")) is None, "it has none"
    blank = journal.land_as(KEY, READER, landing("orders", None, None), after=None)
    filled = journal.adopt_landing(KEY, READER, landing("other", "2h", "append"))
    assert (filled.id, filled.table_id, filled.target) == (blank.id, blank.table_id, "file:///lake/orders")
    assert (filled.window_schedule, filled.basis) == ("2h", "append")
    assert journal.adopt_landing(KEY, READER, landing("other", "3h", "publish")) == filled
    assert journal.landing(KEY, READER) == filled


def test_of_adoptions_at_once_one_says_what_was_not_known(journal, at_once):
    journal.land_as(KEY, READER, landing("orders", None, None), after=None)
    answers = at_once(8, lambda number: journal.adopt_landing(KEY, READER, landing("orders", f"{number + 1}h")))
    assert answers == [journal.landing(KEY, READER)] * 8


def test_columns_only_grow(journal, orders, reads, hour):
    reads.cover(hour(0), orders, schema=(("value", "binary"), ("key", "string")))
    assert journal.landing(KEY, READER).columns == (("value", "binary"), ("key", "string"))
    reads.cover(hour(1), orders, schema=(("value", "binary"), ("amount", "double")))
    grown = (("value", "binary"), ("key", "string"), ("amount", "double"))
    assert journal.landing(KEY, READER).columns == grown
    reads.cover(hour(2), orders)
    assert journal.landing(KEY, READER).columns == grown
    again = journal.land_as(KEY, READER, landing("orders"), after=orders)
    assert again.columns is None


def test_a_run_is_told_what_the_table_got_after_its_plan_was_pinned(journal, orders, reads, hour, plan_of):
    def later(number):
        plan = journal.pin(KEY, plan_of(hour(number)))
        return journal.start_run(KEY, plan, TASK, landing_id=orders.id).later

    narrow, wide = (("value", "binary"),), (("value", "binary"), ("key", "string"))
    journal.pin(KEY, plan_of(hour(0)))
    reads.cover(hour(1), orders, schema=narrow)
    journal.pin(KEY, plan_of(hour(2)))
    reads.cover(hour(3), orders, schema=wide)
    reads.cover(hour(1), orders, schema=narrow)
    assert [later(number) for number in range(5)] == [("value", "key"), ("value", "key"), ("key",), ("key",), ()]
    journal.replan(KEY, plan_of(hour(0), 1))
    assert later(4) == ()
    again = journal.start_run(KEY, plan_of(hour(0), 1), TASK, landing_id=orders.id)
    assert again.later == ()
    assert journal.start_run(KEY, plan_of(hour(0), 1), TASK).later == (), "where nothing lands"


def test_a_plan_that_gets_the_number_of_a_forgotten_one_is_new(journal, orders, reads, hour, plan_of):
    narrow, wide = (("value", "binary"),), (("value", "binary"), ("key", "string"))
    reads.cover(hour(0), orders, schema=narrow)
    journal.pin(KEY, plan_of(hour(1)))
    for number in range(4):
        journal.pin(KEY, plan_of(hour(number), reader="another"))
    reads.cover(hour(1), orders, schema=wide)
    assert journal.forget_reader(KEY, "another")
    plan = journal.pin(KEY, plan_of(hour(2)))
    assert journal.start_run(KEY, plan, TASK, landing_id=orders.id).later == ()


def test_fields_of_structs_are_noted_when_the_table_gets_them(journal, orders, reads, hour, plan_of):
    def later(number):
        plan = journal.pin(KEY, plan_of(hour(number)))
        return journal.start_run(KEY, plan, TASK, landing_id=orders.id).later

    narrow, wide = (("to", "struct<city:string>"),), (("to", "struct<zip:string,city:string>"),)
    reads.cover(hour(1), orders, schema=narrow)
    journal.pin(KEY, plan_of(hour(2)))
    reads.cover(hour(3), orders, schema=wide)
    reads.cover(hour(1), orders, schema=narrow)
    assert journal.landing(KEY, READER).columns == (("to", "struct<city:string,zip:string>"),)
    assert [later(number) for number in range(1, 5)] == [("to", "to.zip"), ("to.zip",), ("to.zip",), ()]
    reads.cover(hour(4), orders, schema=(("to", "struct<city:string,zip:string,more:array<struct<a:int>>>"),))
    reads.cover(hour(4), orders, schema=(("to", "struct<city:string,zip:string,more:array<struct<a:int,b:int>>>"),))
    assert [later(number) for number in (2, 4)] == [
        ("to.zip", "to.more", "to.more.element.b"),
        ("to.more", "to.more.element.b"),
    ]
    assert later(5) == ()


def test_columns_noted_at_once_are_all_kept(journal, orders, at_once, hour, plan_of):
    def land(number):
        plan = journal.pin(KEY, plan_of(hour(number)))
        run = journal.start_run(KEY, plan, TASK, landing_id=orders.id).run
        journal.finish_run(run, covered(plan, schema=(("value", "binary"), (f"c{number}", "string"))))

    at_once(8, land)
    columns = journal.landing(KEY, READER).columns
    assert sorted(columns) == sorted([("value", "binary"), *((f"c{number}", "string") for number in range(8))])


# What counts as covered


def test_windows_of_another_table_are_missing(journal, orders, reads, hour):
    reads.cover(hour(0), orders)
    assert reads.states() == [("covered", "")]
    again = journal.land_as(KEY, READER, landing("elsewhere"), after=orders)
    assert reads.states() == [("missing", "landed in another table before")]
    assert journal.last_covered(KEY, READER) is None
    reads.cover(hour(0), again)
    assert reads.states() == [("covered", "")]


def test_windows_that_landed_nowhere_do_not_count_for_a_reader_that_lands(orders, reads, hour):
    reads.cover(hour(0), None)
    assert reads.states() == [("missing", "read and proven, landed nowhere")]
    reads.cover(hour(0), orders)
    assert reads.states() == [("covered", "")]


def test_a_failure_before_the_plan_counts_under_the_present_landing(journal, orders, reads, hour):
    journal.fail_window(KEY, READER, hour(0), TASK, error_type="StartTrimmed", message="gone", lost=True)
    assert reads.states() == [("lost", "StartTrimmed: gone")]
    journal.land_as(KEY, READER, landing("elsewhere"), after=orders)
    assert [state for state, _ in reads.states()] == ["missing"]


def test_a_run_that_began_under_an_earlier_landing_covers_nothing_in_the_present_one(
    journal, orders, reads, hour, plan_of
):
    plan = journal.pin(KEY, plan_of(hour(0)))
    slow = journal.start_run(KEY, plan, TASK, landing_id=orders.id).run
    journal.land_as(KEY, READER, landing("elsewhere"), after=orders)
    journal.finish_run(slow, covered(plan))
    assert reads.states() == [("missing", "landed in another table before")]


def test_rows_that_somebody_removed_cover_nothing(journal, orders, reads, hour, plan_of):
    for number in range(3):
        reads.cover(hour(number), orders)
    journal.uncover(KEY, READER, orders.id, [hour(1)], "its rows are no longer in the table")
    assert reads.states(0, 2) == [
        ("covered", ""),
        ("failed", "Removed: its rows are no longer in the table"),
        ("covered", ""),
    ]
    assert journal.start_run(KEY, plan_of(hour(1)), TASK, landing_id=orders.id).held is None
    journal.uncover(KEY, "another reader", orders.id, [hour(0)], "nobody's")
    assert reads.states()[0] == ("covered", "")


# Windows that share time


@pytest.mark.parametrize("other", [(0.5, 1.5), (0.25, 0.5), (-1, 2), (0, 0.5), (0, 2), (0.5, 1)])
def test_a_window_that_shares_time_with_a_covered_one_is_refused(journal, orders, reads, plan_of, other):
    reads.cover(reads.hour(0), orders)
    start, end = (reads.hour(0).start + part * HOUR for part in other)
    plan = journal.pin(KEY, plan_of(Window(start, end)))
    with pytest.raises(WindowsOverlap) as caught:
        journal.start_run(KEY, plan, TASK, landing_id=orders.id)
    assert (caught.value.window, caught.value.covered) == (plan.window, (reads.hour(0),))
    assert journal.runs(KEY, READER, plan.window) == ()
    assert ("covered", "") in reads.states()


def test_windows_side_by_side_or_the_same_again_share_no_time(orders, reads, hour):
    for number in (1, 0, 2, 1):
        reads.cover(hour(number), orders)
    assert reads.states(0, 2) == [("covered", "")] * 3


def test_only_covered_windows_of_the_same_table_are_in_the_way(journal, orders, reads, hour, plan_of):
    day = Window(hour(0).start, hour(23).end)
    other = journal.land_as(KEY, "dag.other", landing("other"), after=None)
    plan = journal.pin(KEY, plan_of(hour(0), reader="dag.other"))
    run = journal.start_run(KEY, plan, TASK, landing_id=other.id).run
    journal.finish_run(run, covered(plan))
    reads.cover(hour(1), None)
    failed = journal.start_run(KEY, journal.pin(KEY, plan_of(hour(2))), TASK, landing_id=orders.id).run
    journal.fail_run(failed, "SinkError", "disk full")
    reads.cover(day, orders)
    again = journal.land_as(KEY, READER, landing("elsewhere"), after=orders)
    reads.cover(hour(3), again)


def test_covered_windows_give_way_only_on_purpose(journal, orders, reads, hour):
    for number in range(3):
        reads.cover(hour(number), orders)
    middle = Window(hour(0).start + HOUR / 2, hour(1).end)
    reads.cover(middle, orders, replace_overlaps=True)
    seen = journal.coverage(KEY, READER, hour(0).start, hour(2).end)
    assert seen.covered == (Window(middle.start, hour(2).end),)
    assert not seen.overlaps
    replaced = journal.runs(KEY, READER, hour(0))[0]
    assert (replaced.state, replaced.error_type) == ("failed", "Replaced")
    assert str(middle) in replaced.error_message


def test_a_window_that_began_beside_another_does_not_begin_again_once_that_one_is_covered(
    journal, orders, at_once, hour, plan_of
):
    """Both may begin, for nothing is covered yet: of those the table itself refuses the one that ends later."""
    shapes = [hour(0), Window(hour(0).start + HOUR / 2, hour(1).end)]

    def start(number):
        plan = journal.pin(KEY, plan_of(shapes[number]))
        return journal.start_run(KEY, plan, TASK, landing_id=orders.id).run

    first, second = at_once(2, start)
    journal.finish_run(first, covered(plan_of(shapes[0])))
    with pytest.raises(WindowsOverlap):
        journal.start_run(KEY, plan_of(shapes[1]), TASK, landing_id=orders.id)
    assert journal.runs(KEY, READER, shapes[1])[0].ref.id == second


# Rows of a window


def test_a_run_is_told_how_many_rows_its_window_holds(journal, orders, reads, hour, plan_of):
    def held(**how):
        return journal.start_run(KEY, journal.pinned(KEY, READER, hour(0)), TASK, **how).held

    journal.pin(KEY, plan_of(hour(0)))
    assert held(landing_id=orders.id) is None
    reads.cover(hour(0), orders, rows=9)
    assert held(landing_id=orders.id) == Held(9)
    assert held() is None, "it lands nowhere"
    reads.cover(hour(0), orders, rows=12)
    assert held(landing_id=orders.id) == Held(12)
    journal.replan(KEY, plan_of(hour(0), 3))
    assert held(landing_id=orders.id) == Held(12), "of the plan before: they are in the table until it is replaced"
    again = journal.land_as(KEY, READER, landing("elsewhere"), after=orders)
    assert held(landing_id=again.id) is None


def test_a_plan_that_cannot_hold_what_its_window_holds_does_not_begin(journal, orders, reads, hour, plan_of):
    """Of a source that was made again there may be as many other events: counts do not tell."""

    def begin(plan, **how):
        return journal.start_run(KEY, journal.replan(KEY, plan), TASK, landing_id=orders.id, **how)

    def doubt_of_incarnation(made, *losses):
        plan = plan_of(hour(0))
        (shard,) = plan.start_cut
        gone = tuple(Loss(shard, plan.ranges[0].start, plan.ranges[0].start, cause) for cause in losses)
        return replace(plan, source=replace(plan.source, incarnation=((shard, made),)), losses=gone)

    journal.pin(KEY, doubt_of_incarnation("10:00"))
    reads.cover(hour(0), orders, rows=9)
    begin(doubt_of_incarnation("10:00"))
    runs = len(journal.runs(KEY, READER, hour(0)))
    with pytest.raises(
        RowCountDecreased, match=r"was landed from 9 rows of the stream, and its new plan cannot hold all .*truncated"
    ):
        begin(doubt_of_incarnation("10:00", "truncated"))
    with pytest.raises(RowCountDecreased, match=r"is another one by now, made at 10:30"):
        begin(doubt_of_incarnation("10:30"))
    assert len(journal.runs(KEY, READER, hour(0))) == runs
    plan = doubt_of_incarnation("10:30", "made again")
    started = begin(plan, allow_fewer_rows=True)
    assert started.held == Held(9)
    journal.finish_run(started.run, covered(plan))
    begin(doubt_of_incarnation("10:30", "made again, and truncated"))


def test_a_window_without_rows_has_none_to_lose(journal, orders, reads, hour, plan_of):
    journal.pin(KEY, plan_of(hour(0)))
    reads.cover(hour(0), orders, rows=0)
    plan = plan_of(hour(0))
    (shard,) = plan.start_cut
    lossy = replace(plan, losses=(Loss(shard, plan.ranges[0].start, plan.ranges[0].start, "truncated"),))
    journal.start_run(KEY, journal.replan(KEY, lossy), TASK, landing_id=orders.id)


def test_written_rows_are_remembered_beside_those_read(journal, orders, hour, plan_of):
    plan = journal.pin(KEY, plan_of(hour(0)))
    run = journal.start_run(KEY, plan, TASK, landing_id=orders.id).run
    journal.finish_run(run, Landed(covered(plan, rows=9).receipt, written=3))
    (done,) = journal.runs(KEY, READER, hour(0))
    assert (done.rows, done.written, done.landing_id) == (9, 3, orders.id)


def test_late_rows_stay_counted_until_a_plan_holds_them(journal, orders, reads, hour, plan_of):
    def late():
        return journal.coverage(KEY, READER, hour(0).start, hour(0).end).windows[0].late_rows

    run = reads.cover(hour(0), orders)
    assert late() is None
    journal.count_late(run, 4)
    assert late() == 4
    reads.cover(hour(0), orders)
    assert late() == 4, "the same plan was read again, without them"
    journal.replan(KEY, plan_of(hour(0), 0, 20))
    reads.cover(hour(0), orders)
    assert late() is None, "no one has counted after the new plan"


# Asset events


def test_what_was_landed_and_not_announced_is_known(journal, orders, reads, hour, plan_of):
    assert journal.unannounced(KEY, READER) == ()
    runs = [reads.cover(hour(number), orders) for number in (1, 0)]
    reads.cover(hour(2), None)
    failed = journal.start_run(KEY, journal.pin(KEY, plan_of(hour(3))), TASK, landing_id=orders.id).run
    journal.fail_run(failed, "SinkError", "disk full")
    assert [run.ref.id for run in journal.unannounced(KEY, READER)] == [runs[1], runs[0]], "in order of time"
    journal.announce([runs[1]])
    assert [run.ref.id for run in journal.unannounced(KEY, READER)] == [runs[0]]
    journal.announce(runs)
    assert journal.unannounced(KEY, READER) == ()
    again = reads.cover(hour(0), orders)
    assert [run.ref.id for run in journal.unannounced(KEY, READER)] == [again]
    journal.land_as(KEY, READER, landing("elsewhere"), after=orders)
    assert journal.unannounced(KEY, READER) == ()
    assert journal.unannounced(KEY, "another reader") == ()


def test_what_a_task_gave_to_airflow_is_open_until_the_task_is_known_to_have_succeeded(journal, orders, reads, hour):
    first, second = (reads.cover(hour(number), orders) for number in (0, 1))
    by = Announcer("d", "r", "t", -1)
    journal.announce([first, second], by)
    assert [run.announced_by for run in journal.unannounced(KEY, READER)] == [by, by]
    journal.confirm([first])
    journal.withdraw([second])
    assert [(run.ref.id, run.announced_by) for run in journal.unannounced(KEY, READER)] == [(second, None)]


# Sources and readers


def test_a_source_is_kept_beside_its_key(journal, hour, plan_of):
    written = {"system": "pulsar", "topics": ["persistent://shop/orders/events"], "conn_id": "pulsar_default"}
    assert journal.source(KEY) is None
    journal.store_source(KEY, written)
    assert journal.source(KEY) == written
    journal.store_source(KEY, {**written, "pattern": None})
    assert journal.source(KEY) == {**written, "pattern": None}
    journal.pin(KEY, plan_of(hour(0)))
    assert journal.sources() == [(KEY, READER)]


def test_a_source_introduced_at_once_by_many_is_kept_once(journal, at_once):
    at_once(8, lambda _: journal.store_source(KEY, {"system": "pulsar", "topics": ["a"]}))
    assert journal.source(KEY) == {"system": "pulsar", "topics": ["a"]}


def test_a_reader_is_forgotten_with_all_that_is_known_of_it(journal, orders, reads, hour, plan_of):
    at = hour(0).start
    reads.cover(hour(0), orders)
    other = journal.pin(KEY, plan_of(hour(0), reader="dag.other"))
    journal.finish_run(journal.start_run(KEY, other, TASK).run, covered(other))
    journal.store_source(KEY, {"system": "pulsar"})
    assert journal.forget_reader(KEY, READER)
    assert journal.sources() == [(KEY, "dag.other")]
    assert journal.landing(KEY, READER) is None
    assert journal.pinned(KEY, READER, hour(0)) is None
    assert journal.runs(KEY, READER, hour(0)) == ()
    assert journal.coverage(KEY, READER, at, hour(0).end).counts["missing"] == 1
    assert journal.coverage(KEY, "dag.other", at, hour(0).end).is_complete
    assert journal.source(KEY) == {"system": "pulsar"}
    assert not journal.forget_reader(KEY, READER)
    assert not journal.forget_reader("unheard of", READER)
    again = journal.land_as(KEY, READER, landing("orders"), after=None)
    assert again.table_id != orders.table_id


def test_windows_are_waited_for_since_the_first_one_or_since_somebody_first_asked(journal, hour, plan_of):
    assert journal.watched_from(KEY, READER, hour(5).start) == hour(5).start
    assert journal.watched_from(KEY, READER, hour(9).start) == hour(5).start
    journal.pin(KEY, plan_of(hour(3)))
    assert journal.watched_from(KEY, READER, hour(9).start) == hour(3).start
    journal.fail_window(KEY, READER, hour(1), TASK, error_type="StartTrimmed", message="gone", lost=True)
    assert journal.watched_from(KEY, READER, hour(9).start) == hour(1).start


def test_watchers_that_ask_at_once_wait_since_one_moment(journal, at_once, hour):
    answers = at_once(8, lambda number: journal.watched_from(KEY, READER, hour(number).start))
    assert len(set(answers)) == 1
