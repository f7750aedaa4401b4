import asyncio
from dataclasses import replace
from datetime import timedelta
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from airflow_provider_streams.errors import InvalidRequest, SourceNotFound, StartTrimmed, StartUnproven, WindowNotReady
from airflow_provider_streams.model.plan.plan import Plan, PlanRequest
from airflow_provider_streams.model.stream.cut import Cut
from airflow_provider_streams.model.stream.tail_observation import TailObservation
from airflow_provider_streams.model.window.window import Window
from airflow_provider_streams.systems.pravega.source import PravegaSource
from airflow_provider_streams.systems.pulsar.metadata.ledgers import EARLIEST, at
from airflow_provider_streams.systems.pulsar.source import PulsarSource
from tests.seeds import examples
from tests.unit.systems.pulsar.cluster import EPOCH_MS, Cluster, Stored, Topic, at_ms, refuse

NAME = "persistent://public/default/t"
NOW = at_ms(EPOCH_MS + 10**7)


def window(start_ms, end_ms):
    return Window(at_ms(EPOCH_MS + start_ms), at_ms(EPOCH_MS + end_ms))


def request(start_ms=0, end_ms=1000, *, source=None, slack_ms=0, **given):
    slack = timedelta(milliseconds=slack_ms)
    return PlanRequest(source or PulsarSource("t"), window(start_ms, end_ms), "reader", slack=slack, **given)


def cluster_of(*publish_ms, kinds=None, per_ledger=5):
    kinds = kinds or ["event"] * len(publish_ms)
    cluster = Cluster()
    stored = [Stored(EPOCH_MS + ms, kind) for ms, kind in zip(publish_ms, kinds, strict=True)]
    cluster.add("t", Topic.of(stored, per_ledger))
    return cluster


def planned_entries(plan):
    found = [
        (split.shard, span.run, entry)
        for split in plan.splits
        for span in split.spans
        for entry in range(span.first, span.end)
    ]
    assert len(found) == len(set(found)), "two splits hold one entry"
    return found


def read_entries(cluster, plan):
    """What a faithful reader would give: planned, deliverable, kept by the filter."""
    rows = []
    for shard, ledger, entry in planned_entries(plan):
        stored = cluster.topics[shard].ledgers[ledger][entry]
        keeps = plan.filter is None or plan.filter.start_ms <= stored.publish_ms < plan.filter.end_ms
        if stored.kind == "event" and keeps:
            rows.append((shard, ledger, entry))
    return rows


def test_a_publish_window_holds_its_entries_and_slack_on_both_sides():
    cluster = cluster_of(*range(0, 1000, 100))
    plan = cluster.plan(request(300, 600, slack_ms=100), now=NOW)
    assert len(planned_entries(plan)) == 5
    assert len(read_entries(cluster, plan)) == 3
    assert plan.ranges[0].verdict == "ok"
    assert plan.source.cluster == "standalone"
    assert plan.source.names == (NAME,)


def test_a_plan_survives_json():
    plan = cluster_of(*range(0, 1000, 100)).plan(request(300, 600), now=NOW)
    assert Plan.from_json(plan.to_json()) == plan


@settings(max_examples=examples(60))
@given(st.data())
def test_adjacent_windows_share_no_event_and_miss_none(data):
    slack = data.draw(st.integers(0, 50), label="slack")
    steps = data.draw(st.lists(st.integers(0, 40), min_size=1, max_size=40))
    sorted_ms = [sum(steps[: i + 1]) for i in range(len(steps))]
    # out of order by at most slack
    shifted = [ms + data.draw(st.integers(0, slack)) for ms in sorted_ms]
    kinds = data.draw(
        st.lists(st.sampled_from(["event", "event", "marker", "aborted"]), min_size=len(steps), max_size=len(steps))
    )
    cluster = cluster_of(*shifted, kinds=kinds, per_ledger=data.draw(st.integers(1, 7)))
    edges = sorted(data.draw(st.sets(st.integers(-10, max(shifted) + 20), min_size=2, max_size=6)))
    rows = []
    for start, end in pairwise(edges):
        rows += read_entries(cluster, cluster.plan(request(start, end, slack_ms=slack), now=NOW))
    topic = cluster.topics[NAME]
    expected = [
        (NAME, ledger, entry)
        for ledger, entry, stored in topic.entries
        if stored.kind == "event" and edges[0] <= stored.publish_ms - EPOCH_MS < edges[-1]
    ]
    assert sorted(rows) == expected


@settings(max_examples=examples(40))
@given(st.data())
def test_chained_windows_tile_while_the_topic_grows(data):
    cluster = Cluster()
    topic = cluster.add("t", Topic())
    rows, cut, ledger = [], None, 1
    for number in range(data.draw(st.integers(1, 6))):
        for kind in data.draw(st.lists(st.sampled_from(["event", "event", "marker", "aborted", "roll"]), max_size=8)):
            if kind == "roll":
                ledger += 2
                topic.ledgers[ledger] = []
                topic.version = len(topic.ledgers)
            else:
                topic.ledgers[ledger].append(Stored(EPOCH_MS + number, kind))
        plan = cluster.plan(request(number, number + 1, basis="chained", start_cut=cut), now=NOW)
        assert cut is None or plan.start_cut == cut
        rows += read_entries(cluster, plan)
        cut = plan.end_cut
    assert rows == [(NAME, led, n) for led, n, stored in topic.entries if stored.kind == "event"]


def test_a_window_is_not_ready_before_its_end_and_slack_have_passed():
    cluster = cluster_of(0, 100)
    ready = at_ms(EPOCH_MS + 1500)
    with pytest.raises(WindowNotReady, match="earliest"):
        cluster.plan(request(0, 1000, slack_ms=500), now=ready - timedelta(milliseconds=1))
    assert cluster.requests == [], "nothing has to be asked to know that"
    assert cluster.plan(request(0, 1000, slack_ms=500), now=ready)


def test_an_idle_topic_is_ready_and_empty_once_the_time_has_passed():
    plan = cluster_of(0, 100).plan(request(5000, 6000), now=NOW)
    assert plan.is_empty
    assert plan.ranges[0].verdict == "empty"
    assert plan.start_cut == plan.end_cut


@pytest.mark.parametrize("basis", ["publish", "chained"])
def test_an_empty_topic_is_an_empty_plan(basis):
    plan = cluster_of().plan(request(basis=basis), now=NOW)
    assert plan.is_empty
    assert plan.losses == ()


def test_an_open_transaction_before_the_end_is_not_ready():
    cluster = cluster_of(0, 100, 200, 300, kinds=["event", "open", "event", "event"])
    with pytest.raises(WindowNotReady, match="open transaction"):
        cluster.plan(request(0, 1000), now=NOW)
    # before the transaction everything is final
    assert len(read_entries(cluster, cluster.plan(request(0, 100), now=NOW))) == 1


def test_markers_at_the_tail_do_not_hold_a_window_back():
    cluster = cluster_of(0, 100, 200, kinds=["event", "aborted", "marker"])
    plan = cluster.plan(request(0, 1000), now=NOW)
    assert len(read_entries(cluster, plan)) == 1
    assert plan.end_cut[NAME] == at(10, 1)


def test_a_transaction_that_commits_while_we_ask_is_read():
    cluster = cluster_of(0, 100, 200, kinds=["event", "open", "marker"])
    topic, look = cluster.topics[NAME], cluster.probe

    def commits_afterwards(places):
        looks = look(places)
        # it ends between the look at the edges and the question for what stands after them
        topic.ledgers[10][1] = Stored(EPOCH_MS + 100, "event")
        return looks

    cluster.probe = commits_afterwards
    plan = cluster.plan(request(0, 1000), now=NOW)
    assert len(read_entries(cluster, plan)) == 2


def test_an_open_transaction_whose_message_hides_from_rest_is_waited_for():
    cluster = cluster_of(0, 100, 200, kinds=["event", "open", "event"])
    cluster.topics[NAME].peek = lambda *_: refuse(500, "")
    with pytest.raises(WindowNotReady, match="open transaction"):
        cluster.plan(request(0, 100), now=NOW)


def ready(cluster, asked):
    cluster.requests.clear()
    cluster.looked.clear()
    cluster.ask(lambda planner: planner.check_ready(asked), now=NOW)


@pytest.mark.parametrize(
    ("kinds", "is_ready"),
    [
        (["event"] * 4, True),
        (["event", "open", "event", "event"], False),
        (["event", "aborted", "marker", "marker"], True),
        (["event", "event", "event", "open"], False),
        ([], True),
    ],
)
@pytest.mark.parametrize("per_ledger", [2, 4])
@pytest.mark.parametrize("rolled", [True, False])
def test_a_window_is_ready_when_it_can_be_planned(kinds, is_ready, per_ledger, rolled):
    cluster = cluster_of(*range(0, 100 * len(kinds), 100), kinds=kinds, per_ledger=per_ledger)
    if rolled:
        cluster.topics[NAME].ledgers[1000] = []
    for ask in (cluster.plan, lambda asked, now: ready(cluster, asked)):  # noqa: ARG005
        if is_ready:
            ask(request(0, 1000), now=NOW)
        else:
            with pytest.raises(WindowNotReady, match="open transaction"):
                ask(request(0, 1000), now=NOW)


def test_without_open_transactions_readiness_costs_one_call_a_topic():
    cluster = partitioned()
    ready(cluster, request(0, 1000))
    assert len(cluster.requests) == 2, "how many partitions, and their statistics"
    assert cluster.looked == []


def test_an_open_transaction_after_the_window_does_not_matter():
    cluster = cluster_of(0, 5000, kinds=["event", "open"])
    ready(cluster, request(0, 1000, slack_ms=100))
    plan = cluster.plan(request(0, 1000, slack_ms=100), now=NOW)
    assert len(read_entries(cluster, plan)) == 1


def test_partitions_not_made_yet_are_ready():
    cluster = partitioned(missing=(1,))
    cluster.topics[f"{NAME}-partition-0"].ledgers[100].append(Stored(EPOCH_MS + 5000, "open"))
    ready(cluster, request(0, 500))


def trimmed_cluster():
    cluster = cluster_of(*range(0, 2000, 100))
    topic = cluster.topics[NAME]
    topic.retention = {"retentionTimeInMinutes": 0, "retentionSizeInMB": 0}
    topic.created_ms, topic.modified_ms = EPOCH_MS - 1000, EPOCH_MS + 1900
    topic.trim(2, topic.modified_ms)
    return cluster


SEEN_BEFORE_TRIM = TailObservation(at_ms(EPOCH_MS + 300), Cut({NAME: at(10, 3)}))


def test_a_trimmed_start_without_a_look_is_unproven_and_planned():
    plan = trimmed_cluster().plan(request(500, 1500), now=NOW)
    assert plan.losses == ()
    assert plan.ranges[0].verdict.startswith("unproven: ")


def test_a_trimmed_start_is_an_error_naming_shard_and_position():
    with pytest.raises(StartTrimmed) as caught:
        trimmed_cluster().plan(request(500, 1500, first_seen=SEEN_BEFORE_TRIM), now=NOW)
    assert caught.value.shard == NAME
    assert caught.value.available == at(16, 0)
    assert "on_loss='record'" in str(caught.value)


def test_a_window_after_what_was_trimmed_is_no_loss():
    cluster = trimmed_cluster()
    plan = cluster.plan(request(1100, 1500), now=NOW)
    assert plan.losses == ()
    assert len(read_entries(cluster, plan)) == 4


def test_an_accepted_loss_is_recorded_and_the_rest_planned():
    cluster = trimmed_cluster()
    plan = cluster.plan(request(500, 1500, on_loss="record", first_seen=SEEN_BEFORE_TRIM), now=NOW)
    assert [(loss.shard, loss.start, loss.end) for loss in plan.losses] == [(NAME, at(10, 3), at(16, 0))]
    assert plan.ranges[0].verdict.startswith("lost: ")
    assert len(read_entries(cluster, plan)) == 5


def test_a_chain_whose_place_was_trimmed_is_a_loss():
    cluster = trimmed_cluster()
    before = Cut({NAME: at(10, 3)})
    with pytest.raises(StartTrimmed, match="ledger 10 is gone"):
        cluster.plan(request(basis="chained", start_cut=before), now=NOW)
    plan = cluster.plan(request(basis="chained", start_cut=before, on_loss="record"), now=NOW)
    assert plan.start_cut[NAME] == at(16, 0)
    assert [(loss.start, loss.end) for loss in plan.losses] == [(at(10, 3), at(16, 0))]
    assert len(read_entries(cluster, plan)) == 10


def test_given_cuts_decide_alone_and_nothing_is_filtered():
    cluster = cluster_of(*range(0, 1000, 100))
    start, end = Cut({NAME: at(10, 2)}), Cut({NAME: at(13, 1)})
    for basis in ("cuts", "append"):
        plan = cluster.plan(request(5000, 6000, basis=basis, start_cut=start, end_cut=end), now=NOW)
        assert plan.filter is None
        assert (plan.start_cut, plan.end_cut) == (start, end)
        assert len(read_entries(cluster, plan)) == 4


def test_recorded_cuts_must_both_be_given():
    cluster = cluster_of(0, 100)
    for cuts_given in ({}, {"start_cut": Cut({NAME: at(10, 0)})}, {"end_cut": Cut({NAME: at(10, 1)})}):
        with pytest.raises(InvalidRequest, match="needs both cuts"):
            cluster.plan(request(basis="append", **cuts_given), now=NOW)


def test_a_shard_made_between_recorded_cuts_is_read_from_its_beginning_and_a_later_one_not_at_all():
    cluster = partitioned()
    shards = [f"{NAME}-partition-{number}" for number in range(3)]
    start = Cut({shards[0]: at(100, 2)})
    end = Cut({shards[0]: at(100, 5), shards[1]: at(200, 4)})
    plan = cluster.plan(request(basis="append", start_cut=start, end_cut=end), now=NOW)
    assert {one.shard: one.entries for one in plan.ranges} == {shards[0]: 3, shards[1]: 4}


def test_a_topic_that_was_deleted_is_a_loss_only_where_the_window_has_events_of_it():
    cluster = cluster_of(0, 100)
    gone = "persistent://public/default/gone"
    kept = {NAME: at(10, 0)}
    start = Cut({**kept, gone: at(5, 3)})
    plan = cluster.plan(request(basis="append", start_cut=start, end_cut=start), now=NOW)
    assert [one.shard for one in plan.ranges] == [NAME]
    end = Cut({**kept, gone: at(5, 4)})
    with pytest.raises(StartTrimmed, match="no longer exists"):
        cluster.plan(request(basis="append", start_cut=start, end_cut=end), now=NOW)
    plan = cluster.plan(request(basis="append", start_cut=start, end_cut=end, on_loss="record"), now=NOW)
    assert [loss.shard for loss in plan.losses] == [gone]


def test_an_end_cut_beyond_the_tail_is_not_ready():
    cluster = cluster_of(0, 100)
    with pytest.raises(WindowNotReady, match="beyond the tail"):
        cluster.plan(request(basis="cuts", end_cut=Cut({NAME: at(10, 3)})), now=NOW)


def partitioned(count=3, missing=()):
    cluster = Cluster(partitions={NAME: count})
    for number in range(count):
        if number not in missing:
            stored = [Stored(EPOCH_MS + ms) for ms in range(0, 1000, 100)]
            cluster.add(f"t-partition-{number}", Topic.of(stored, first_ledger=100 * (number + 1)))
    return cluster


def test_every_partition_is_a_shard_and_the_plan_names_the_topic():
    cluster = partitioned()
    plan = cluster.plan(request(0, 500), now=NOW)
    assert [part.shard for part in plan.ranges] == [f"{NAME}-partition-{n}" for n in range(3)]
    assert plan.source.names == (NAME,)
    assert len(read_entries(cluster, plan)) == 15


def test_one_partition_can_be_read_alone():
    plan = partitioned().plan(request(0, 500, source=PulsarSource("t-partition-2")), now=NOW)
    assert [part.shard for part in plan.ranges] == [f"{NAME}-partition-2"]


@pytest.mark.parametrize("basis", ["publish", "chained"])
def test_a_partition_that_does_not_exist_may_have_been_deleted(basis):
    cluster, missing = partitioned(missing=(1,)), f"{NAME}-partition-1"
    asked = request(0, 500, basis=basis)
    plan = cluster.plan(asked, now=NOW)
    assert [part.verdict.partition(":")[0] for part in plan.ranges] == ["ok", "unproven", "ok"]
    assert plan.start_cut[missing] == EARLIEST
    assert [shard for shard, _ in plan.source.incarnation] == [part.shard for part in plan.ranges if part.entries]
    with pytest.raises(StartUnproven, match=f"{missing}.*create-missed-partitions {NAME}`"):
        cluster.plan(replace(asked, on_unproven="fail"), now=NOW)
    if basis == "chained":
        later = replace(asked, start_cut=plan.end_cut, start_incarnation=plan.source.incarnation, on_unproven="fail")
        with pytest.raises(StartUnproven, match=missing):
            cluster.plan(later, now=NOW)


def test_a_chain_starts_new_partitions_at_their_head():
    cluster = partitioned(2)
    first = cluster.plan(request(0, 1, basis="chained"), now=NOW)
    cluster.partitions[NAME] = 3
    cluster.add("t-partition-2", Topic.of([Stored(EPOCH_MS)] * 4))
    plan = cluster.plan(request(1, 2, basis="chained", start_cut=first.end_cut), now=NOW)
    assert len(read_entries(cluster, plan)) == 4


def test_a_chain_over_a_topic_that_is_gone_is_a_loss():
    cluster = partitioned(2)
    first = cluster.plan(request(0, 1, basis="chained"), now=NOW)
    cluster.partitions[NAME] = 1
    with pytest.raises(StartTrimmed, match="no longer exists"):
        cluster.plan(request(1, 2, basis="chained", start_cut=first.end_cut), now=NOW)
    accepted = request(1, 2, basis="chained", start_cut=first.end_cut, on_loss="record")
    assert [loss.shard for loss in cluster.plan(accepted, now=NOW).losses] == [f"{NAME}-partition-1"]


def test_a_pattern_is_resolved_and_recorded():
    cluster = cluster_of(0)
    cluster.add("other", Topic())
    cluster.add("tt", Topic())
    plan = cluster.plan(request(source=PulsarSource(pattern="t+")), now=NOW)
    assert plan.source.names == (NAME, f"{NAME}t")


def test_a_topic_of_a_pattern_that_was_seen_only_after_the_window_is_lost_if_it_may_have_held_some_of_it():
    cluster = cluster_of(0)
    asked = request(0, 1000, source=PulsarSource(pattern="t+"))
    seen = TailObservation(at_ms(EPOCH_MS + 5000), Cut({f"{NAME}t": at(7, 5)}), (), frozenset())
    with pytest.raises(StartTrimmed, match=f"{NAME}t.*no longer exists"):
        cluster.plan(replace(asked, first_seen=seen), now=NOW)
    accepted = cluster.plan(replace(asked, first_seen=seen, on_loss="record"), now=NOW)
    assert [loss.shard for loss in accepted.losses] == [f"{NAME}t"]
    life = ((f"{NAME}t", at_ms(EPOCH_MS + 4000).isoformat()),)
    for other in (replace(seen, empty=frozenset([f"{NAME}t"])), replace(seen, incarnation=life)):
        assert not cluster.plan(replace(asked, first_seen=other), now=NOW).losses
    before = replace(seen, at=at_ms(EPOCH_MS - 5000))
    with pytest.raises(StartTrimmed):
        cluster.plan(replace(asked, first_seen=before), now=NOW)
    assert not cluster.plan(replace(asked, first_seen=before, seen_later=(seen,)), now=NOW).losses, "it held nothing"


@pytest.mark.parametrize("source", [PulsarSource("missing"), PulsarSource(pattern="nothing-.*")])
def test_a_missing_topic_is_not_found(source):
    with pytest.raises(SourceNotFound):
        cluster_of(0).plan(request(source=source), now=NOW)


def test_nothing_but_get_is_ever_sent():
    cluster = trimmed_cluster()
    cluster.plan(request(500, 1500, on_loss="record"), now=NOW)
    assert {line.partition(" ")[0] for line in cluster.requests} == {"GET"}


def test_retention_that_may_not_be_read_is_unknown():
    cluster = cluster_of(*range(0, 1000, 100))
    cluster.topics[NAME].retention = None
    assert cluster.plan(request(300, 600), now=NOW).ranges[0].verdict == "unknown"


def test_a_plan_of_many_partitions_asks_of_each_two_times_and_two_looks():
    cluster = partitioned(20)
    plan = cluster.plan(request(300, 600), now=NOW)
    assert len(plan.ranges) == 20
    lookups = [line for line in cluster.requests if "messageid" in line]
    assert (len(lookups), len(cluster.looked)) == (40, 40)
    assert len(cluster.requests) - len(lookups) == 5, "partitions, ledgers, metadata, retention, and the cluster's name"


def test_a_start_that_nothing_proves_lands_unproven_or_is_refused():
    cluster = trimmed_cluster()
    cluster.topics[NAME].retention = {"retentionTimeInMinutes": -1, "retentionSizeInMB": -1}
    plan = cluster.plan(request(500, 1500), now=NOW)
    assert plan.losses == ()
    assert plan.ranges[0].verdict.startswith("unproven: the first message still held was published at")
    assert plan.unproven == plan.ranges
    assert Plan.from_json(plan.to_json()).unproven == plan.ranges
    with pytest.raises(StartUnproven) as caught:
        cluster.plan(request(500, 1500, on_unproven="fail"), now=NOW)
    assert caught.value.shard == NAME
    # what is proven is not refused
    assert cluster.plan(request(1100, 1500, on_unproven="fail"), now=NOW).unproven == ()


def test_an_empty_window_of_a_trimmed_topic_is_no_quiet_empty():
    cluster = trimmed_cluster()
    cluster.topics[NAME].retention = {"retentionTimeInMinutes": -1, "retentionSizeInMB": -1}
    (one,) = cluster.plan(request(100, 200), now=NOW).ranges
    assert one.entries == 0
    assert one.verdict.startswith("unproven")


def test_what_an_earlier_plan_saw_proves_or_is_lost():
    cluster = cluster_of(*range(0, 2000, 100))
    topic = cluster.topics[NAME]
    before = cluster.plan(request(0, 100), now=at_ms(EPOCH_MS + 400)).tail_observation
    assert before.tail == Cut({NAME: at(19, 5)})
    assert before.at == at_ms(EPOCH_MS + 400)
    topic.trim(3, EPOCH_MS + 900)
    # nothing from before the window is held, but the place where the topic ended
    seen = replace(before, tail=Cut({NAME: at(19, 0)}))
    assert cluster.plan(request(500, 1000, first_seen=seen), now=NOW).unproven == ()
    gone = replace(before, tail=Cut({NAME: at(13, 2)}))
    with pytest.raises(StartTrimmed, match="where the topic ended at"):
        cluster.plan(request(500, 1000, first_seen=gone), now=NOW)


def test_a_topic_made_anew_is_told_by_what_an_earlier_plan_saw():
    cluster = cluster_of(*range(0, 1000, 100))
    before = cluster.plan(request(0, 100), now=NOW).tail_observation
    topic = cluster.add("t", Topic({500: []}))
    topic.created_ms = EPOCH_MS + 5000
    assert cluster.plan(request(0, 1000), now=NOW).ranges[0].verdict == "empty", "nothing is known yet"
    with pytest.raises(StartTrimmed, match="deleted, and made again"):
        cluster.plan(request(0, 1000, first_seen=before), now=NOW)
    with pytest.raises(StartTrimmed, match="deleted, and made again"):
        cluster.plan(request(basis="chained", start_cut=before.tail, first_seen=before), now=NOW)
    plan = cluster.plan(request(0, 1000, first_seen=before, on_loss="record"), now=NOW)
    assert "made again" in plan.losses[0].cause


def test_a_look_is_a_sighting():
    cluster = partitioned(missing=(1,))
    seen = cluster.ask(lambda planner: planner.observe_tail(PulsarSource("t")), now=NOW)
    assert seen.at == NOW
    assert seen.tail == Cut(
        {f"{NAME}-partition-{n}": place for n, place in enumerate((at(103, 5), EARLIEST, at(303, 5)))}
    )
    assert [shard for shard, _ in seen.incarnation] == [f"{NAME}-partition-{n}" for n in (0, 2)]
    assert TailObservation.from_json(seen.to_json()) == seen


def test_other_clocks_are_remarked():
    times = [ms + 500 * (ms // 100 % 2) for ms in range(0, 4000, 100)]
    plan = cluster_of(*times).plan(request(1000, 2000, slack_ms=10), now=NOW)
    assert plan.remarks
    assert NAME in plan.remarks[0]
    assert "out of order" in plan.remarks[0]
    assert cluster_of(*range(0, 4000, 100)).plan(request(1000, 2000), now=NOW).remarks == ()


@pytest.mark.parametrize("year", [1, 9999])
def test_windows_at_the_ends_of_the_calendar_are_planned_or_refused_by_name(year):
    edge = at_ms(EPOCH_MS).replace(year=year, month=1 if year == 1 else 12, day=1 if year == 1 else 31)
    start = edge.replace(hour=0 if year == 1 else 22, minute=0, second=0, microsecond=0)
    far = Window(start, start + timedelta(hours=1))
    with pytest.raises(InvalidRequest, match="1 to 9999"):
        PlanRequest(PulsarSource("t"), far, "r", slack=timedelta(hours=3))
    asked = PlanRequest(PulsarSource("t"), far, "r", slack=timedelta(0))
    if year == 1:
        assert cluster_of(0).plan(asked, now=NOW).is_empty
    else:
        with pytest.raises(WindowNotReady):
            cluster_of(0).plan(asked, now=NOW)


def test_other_systems_are_refused():
    with pytest.raises(InvalidRequest, match="not a Pulsar source"):
        cluster_of(0).plan(request(source=PravegaSource("a/b")), now=NOW)


async def test_planning_works_inside_a_running_loop():
    cluster = cluster_of(*range(0, 1000, 100))
    assert asyncio.get_running_loop()
    assert len(planned_entries(cluster.plan(request(300, 600), now=NOW))) == 3


@pytest.mark.parametrize("per_ledger", [1000, 5])
def test_an_edge_costs_one_lookup_and_one_look_however_many_ledgers_there_are(per_ledger):
    cluster = Cluster()
    cluster.add("t", Topic.of([Stored(EPOCH_MS + 100 * number) for number in range(1000)], per_ledger))
    window = Window(at_ms(EPOCH_MS + 40_000), at_ms(EPOCH_MS + 60_000))
    cluster.plan(PlanRequest(PulsarSource("t"), window, "reader", slack=timedelta(seconds=5)), now=at_ms(2 * EPOCH_MS))
    assert sum("messageid" in request for request in cluster.requests) == 2
    assert len(cluster.looked) == 2


SEEN_DELETED = TailObservation(at_ms(EPOCH_MS + 300), Cut({NAME: at(10, 3)}), (), frozenset())


@pytest.mark.parametrize("basis", ["publish", "chained"])
@pytest.mark.parametrize("source", [PulsarSource("t"), PulsarSource(["t", "other"]), PulsarSource(pattern="t+")])
def test_a_topic_that_was_seen_and_was_deleted_is_lost(basis, source):
    cluster = Cluster()
    cluster.add("other", Topic.of([Stored(EPOCH_MS)]))
    asked = request(0, 1000, basis=basis, source=source, first_seen=SEEN_DELETED)
    with pytest.raises(StartTrimmed, match=f"{NAME}.*no longer exists"):
        cluster.plan(asked, now=NOW)
    accepted = cluster.plan(replace(asked, on_loss="record"), now=NOW)
    assert [loss.shard for loss in accepted.losses] == [NAME]
    assert accepted.source.names
    assert Plan.from_json(accepted.to_json()) == accepted
    with pytest.raises(SourceNotFound):
        cluster.plan(replace(asked, first_seen=None), now=NOW)
    unknown = replace(SEEN_DELETED, tail=Cut({f"{NAME}ttt": at(10, 3)}))
    if source.topics:
        with pytest.raises(SourceNotFound):
            cluster.plan(replace(asked, first_seen=unknown), now=NOW)


@pytest.mark.parametrize("name", ["t", "t-partition-1"])
def test_recorded_cuts_of_a_topic_that_was_deleted_prove_a_loss_or_that_nothing_was_stored(name):
    shard = f"persistent://public/default/{name}"
    places = [Cut({shard: at(10, entry)}) for entry in (3, 3, 7)]
    asked = request(0, 1000, basis="append", source=PulsarSource(name), start_cut=places[0], end_cut=places[2])
    with pytest.raises(StartTrimmed, match=f"{shard}.*no longer exists"):
        Cluster().plan(asked, now=NOW)
    accepted = Cluster().plan(replace(asked, on_loss="record"), now=NOW)
    assert [loss.shard for loss in accepted.losses] == [shard]
    quiet = Cluster().plan(replace(asked, end_cut=places[1]), now=NOW)
    assert (quiet.losses, quiet.splits, quiet.unproven) == ((), (), ())
    assert quiet.source.names == (NAME,)


def test_no_window_of_a_chain_is_ready_of_a_topic_that_does_not_exist():
    asked = request(0, 500, basis="chained")
    ready(partitioned(), asked)
    with pytest.raises(SourceNotFound):
        ready(Cluster(), asked)
