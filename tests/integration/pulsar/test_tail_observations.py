"""What is noted of a topic when it is first looked at decides later whether its past is proven, or proven lost."""

from __future__ import annotations

import contextlib
import random
from datetime import UTC, datetime, timedelta

import httpx
import pytest

from airflow_provider_streams.errors import PlanOptionsChanged, StartTrimmed, StartUnproven, WindowNotReady
from airflow_provider_streams.journal.evidence.tail_observations import SPACING
from airflow_provider_streams.journal.store import Journal
from airflow_provider_streams.model.plan.plan import Plan, PlanRequest
from airflow_provider_streams.model.stream.tail_observation import TailObservation, relevant
from airflow_provider_streams.model.window.basis import Chained, Cuts, PublishTime
from airflow_provider_streams.model.window.window import Window
from airflow_provider_streams.systems.pulsar.metadata.ledgers import EARLIEST
from airflow_provider_streams.systems.pulsar.source import PulsarSource
from airflow_provider_streams.systems.pulsar.system import PulsarSystem
from airflow_provider_streams.testing.landing import cover_without_spark
from airflow_provider_streams.windows.after_landing.late_rows import LateRows
from airflow_provider_streams.windows.plan.cut_recording import record
from airflow_provider_streams.windows.plan.planning import WindowRead, fresh_plan, pinned_plan
from airflow_provider_streams.windows.plan.readiness import WindowQuestion
from airflow_provider_streams.windows.plan.tail_observations import observe_tail
from stream_servers.waiting import wait_until

pytestmark = pytest.mark.pulsar

MILLISECOND, HOUR = timedelta(milliseconds=1), timedelta(hours=1)


@pytest.fixture
def journal(tmp_path):
    with Journal.open(f"sqlite:///{tmp_path / 'journal.db'}") as opened:
        yield opened


@pytest.fixture
def system(bench):
    return PulsarSystem(bench.endpoint)


class Topic:
    """A topic whose retention was short, and is not any more."""

    def __init__(self, bench, partitions=None):
        self.bench, self.name = bench, bench.topic("seen", partitions)
        self.source = PulsarSource(self.name)

    def write(self, count, shard=None):
        self.bench.write(shard or self.name, [b"%d" % number for number in range(count)])

    def trim(self):
        """Trim all ledgers but the open one; afterwards, retention says that everything stays for ever."""
        self.bench.server.set_retention(self.bench.namespace, minutes=0, megabytes=0)
        wait_until(self._trimmed, "the old ledgers are gone")
        self.bench.server.set_retention(self.bench.namespace, minutes=-1, megabytes=-1)

    def _trimmed(self):
        self.bench.server.admin("POST", f"{self.bench.path(self.name)}/trim")
        stats = self.bench.server.admin("GET", f"{self.bench.path(self.name)}/internalStats")
        return len(stats["ledgers"]) == 1


def now():
    return datetime.now(UTC)


def hour_until(moment):
    wait_until(lambda: now() > moment + 5 * MILLISECOND, "a few milliseconds")
    return Window(moment - HOUR, moment)


def asked(topic, window, **more):
    return WindowRead(WindowQuestion(topic.source, window, PublishTime(MILLISECOND)), "tests", **more)


def test_what_was_trimmed_before_anybody_looked_is_unproven_and_lands(bench, system, journal):
    topic = Topic(bench)
    topic.write(120)
    topic.trim()
    topic.write(5)
    window = hour_until(now())
    with pytest.raises(StartUnproven, match="nothing proves that no older one was removed"):
        pinned_plan(journal, system, asked(topic, window, on_unproven="fail"), replan=False)
    options = {"service_url": bench.endpoint.service_url, "admin_url": bench.endpoint.admin_url}
    landed = cover_without_spark(journal, topic.source, window, "tests", options)
    assert landed.receipt.verdict == "unproven"
    assert landed.receipt.rows < 125
    (shown,) = journal.coverage(topic.source.key, "tests", window.start, window.end).windows
    assert (shown.state, shown.verdict, shown.to_json()["verdict"]) == ("covered", "unproven", "unproven")
    pinned = journal.pinned(topic.source.key, "tests", window)
    assert LateRows(journal, system, topic.source, HOUR).included(pinned).unproven, "late rows prove nothing"
    with pytest.raises(PlanOptionsChanged, match="accepted by on_unproven='land'"):
        pinned_plan(journal, system, asked(topic, window, on_unproven="fail"), replan=False)
    # what planning saw proves the windows after it
    topic.write(120)
    later = Window(window.end + SPACING, window.end + SPACING + HOUR)
    assert journal.tail_observation(topic.source.key, later.start).at <= later.start


def test_a_partition_that_was_deleted_before_anybody_looked_is_unproven(bench, system, journal):
    topic = Topic(bench, 2)
    gone, kept = (f"{topic.name}-partition-{number}" for number in range(2))
    for _ in range(2):
        begin = now()
        topic.write(3, gone), topic.write(3, kept)
        window = Window(begin, hour_until(now()).end)
    bench.server.admin("DELETE", f"{bench.path(gone)}?force=true")
    with pytest.raises(StartUnproven, match=f"{gone}.*does not exist"):
        fresh_plan(journal, system, asked(topic, window, on_unproven="fail"))
    plan = fresh_plan(journal, system, asked(topic, window))
    assert {part.shard: part.verdict.partition(":")[0] for part in plan.ranges} == {gone: "unproven", kept: "ok"}
    assert [shard for shard, _ in plan.source.incarnation] == [kept], "the other one's identity is known"
    # the cure that the message names
    bench.server.admin("POST", f"{bench.path(topic.name)}/createMissedPartitions")
    later = Window(now(), hour_until(now() + 5 * MILLISECOND).end)
    assert not fresh_plan(journal, system, asked(topic, later, on_unproven="fail")).unproven


def test_the_head_of_one_shard_is_as_unproven_as_that_of_all(bench, system, journal):
    trimmed, whole = Topic(bench), Topic(bench)
    trimmed.write(120)
    trimmed.trim()
    trimmed.write(5)
    whole.write(5)
    source, window = PulsarSource([trimmed.name, whole.name]), hour_until(now())
    (ledger, entry, _) = system.parse_cut(source, "earliest")[trimmed.name].parts

    def verdict(start, **more):
        read = WindowRead(WindowQuestion(source, window, Cuts(start, "latest")), "tests", **more)
        found = {one.shard: one.verdict for one in fresh_plan(journal, system, read).ranges}
        assert not found[whole.name].startswith("unproven")
        return found[trimmed.name]

    of_all = verdict("earliest")
    assert of_all.startswith("unproven: it begins at the first entry still held")
    assert verdict({trimmed.name: "earliest", whole.name: "earliest"}) == of_all
    some = {trimmed.name: "earliest", whole.name: "latest"}
    assert verdict(some) == of_all
    with pytest.raises(StartUnproven):
        verdict(some, on_unproven="fail")
    assert not verdict({trimmed.name: f"{ledger}:{entry}", whole.name: "earliest"}).startswith("unproven")


def test_with_an_earlier_look_the_same_window_is_proven(bench, system, journal, tmp_path):
    topic = Topic(bench)
    topic.write(100)
    topic.trim()
    bench.unload(topic.name)
    observe_tail(journal, system, topic.source)
    begin = journal.tail_observation(topic.source.key, now()).at + 2 * MILLISECOND
    wait_until(lambda: now() > begin, "a moment")
    topic.write(60)
    until = now()
    wait_until(lambda: now() > until + 5 * MILLISECOND, "a few milliseconds")
    # nothing older than the window is held: the look alone proves it
    proven = fresh_plan(journal, system, asked(topic, Window(begin, until), on_unproven="fail"))
    assert {part.verdict.partition(":")[0] for part in proven.ranges} == {"ok"}
    # who never looked cannot say so
    with Journal.open(f"sqlite:///{tmp_path / 'other.db'}") as other, pytest.raises(StartUnproven):
        fresh_plan(other, system, asked(topic, Window(begin, until), on_unproven="fail"))


@pytest.mark.parametrize("who", ["waits", "records", "plans"])
def test_what_is_trimmed_after_a_look_is_proven_lost(bench, system, journal, who):
    topic = Topic(bench)
    topic.write(60)
    if who == "waits":
        observe_tail(journal, system, topic.source)
    elif who == "records":
        (noted,) = record(journal, {topic.source.conn_id: system}, [topic.source], "tests")
        assert noted.error is None
    else:
        with pytest.raises(WindowNotReady):
            fresh_plan(journal, system, asked(topic, Window(now(), now() + HOUR)))
    seen = journal.tail_observation(topic.source.key, now())
    assert seen.tail[topic.name].parts[1] > 0
    begin = seen.at + 2 * MILLISECOND
    wait_until(lambda: now() > begin, "a moment")
    topic.write(120)
    end = now()
    topic.trim()
    window = Window(begin, end)
    with pytest.raises(StartTrimmed, match="where the topic ended at"):
        pinned_plan(journal, system, asked(topic, window), replan=False)
    plan = Plan.from_json(fresh_plan(journal, system, asked(topic, window, on_loss="record")).to_json())
    assert plan.losses
    again = LateRows(journal, system, topic.source, HOUR).included(plan)
    assert again.losses == plan.losses, "with its late rows it is no more whole than before"
    again.check()


def test_a_topic_made_anew_after_a_look_is_proven_lost(bench, system, journal):
    topic = Topic(bench)
    topic.write(60)
    observe_tail(journal, system, topic.source)
    window = hour_until(now())
    path = bench.path(topic.name)
    bench.server.admin("DELETE", f"{path}?force=true")
    bench.server.create_topic(topic.name.removeprefix("persistent://"))
    with pytest.raises(StartTrimmed, match="deleted, and made again"):
        fresh_plan(journal, system, asked(topic, window))


def test_a_topic_that_a_pattern_matched_and_that_is_gone_is_a_loss(bench, system, journal):
    kept, gone = Topic(bench), Topic(bench)
    kept.write(5), gone.write(5)
    pattern = PulsarSource(pattern=f"persistent://{bench.namespace}/seen-.*")
    observe_tail(journal, system, pattern)
    window = hour_until(now())
    read = WindowRead(WindowQuestion(pattern, window, PublishTime(MILLISECOND)), "tests")
    bench.server.admin("DELETE", f"{bench.path(gone.name)}?force=true")
    with pytest.raises(StartTrimmed, match=rf"{gone.name}.*no longer exists"):
        fresh_plan(journal, system, read)
    accepted = fresh_plan(journal, system, WindowRead(read.question, "tests", on_loss="record"))
    assert [loss.shard for loss in accepted.losses] == [gone.name]
    assert [part.shard for part in accepted.ranges] == [kept.name]


def test_the_first_window_of_a_chain_is_proven_by_a_look_before_it(bench, system, journal, tmp_path):
    topic = Topic(bench)
    topic.write(120)
    topic.trim()
    topic.write(5)
    end = now()
    read = WindowRead(WindowQuestion(topic.source, hour_until(end), Chained()), "tests", on_unproven="fail")
    with pytest.raises(StartUnproven, match="first entry still held"):
        fresh_plan(journal, system, read)
    seen = system.observe_tail(topic.source)
    with Journal.open(f"sqlite:///{tmp_path / 'other.db'}") as other:
        other.note_tail_observation(topic.source.key, TailObservation(end - 2 * HOUR, seen.tail, seen.incarnation))
        assert [part.verdict for part in fresh_plan(other, system, read).ranges] == ["ok"]


class Told:
    """A partitioned topic to which things happen, with all that was written to it, and all that was seen of it."""

    def __init__(self, bench, system):
        self.topic, self.bench, self.system = Topic(bench, 2), bench, system
        self.shards = [f"{self.topic.name}-partition-{number}" for number in range(2)]
        self.written, self.looks, self.marks = [], [], [now()]

    def write(self, dice):
        shard, count = dice.choice(self.shards), dice.randint(1, 30)
        values = [b"%d" % (len(self.written) + number) for number in range(count)]
        self.bench.write(shard, values)
        self.written += [(value, shard, self.marks[-1]) for value in values]

    def look(self, _):
        self.looks.append(self.system.observe_tail(self.topic.source))

    def truncate(self, dice):
        self.bench.server.admin("DELETE", f"{self.bench.path(dice.choice(self.shards))}/truncate")

    def unload(self, _):
        self.bench.unload(self.topic.name)

    def delete(self, dice):
        self.bench.server.admin("DELETE", f"{self.bench.path(dice.choice(self.shards))}?force=true")

    def remake(self, _):
        self.bench.server.admin("POST", f"{self.bench.path(self.topic.name)}/createMissedPartitions")

    def mark(self):
        moment = now()
        wait_until(lambda: now() > moment + 3 * MILLISECOND, "the next step's time")
        self.marks.append(now())

    def plan(self, window):
        first, *later = relevant(self.looks, window.start - MILLISECOND) or (None,)
        asked = {"first_seen": first, "seen_later": tuple(later), "on_loss": "record", "slack": MILLISECOND}
        made = self.system.plan(PlanRequest(self.topic.source, window, "tests", **asked))
        made.check()
        return made

    def missing(self, window, made):
        """What was written in a window, and is not read: the shard, and the time of the step."""
        rows = set()
        for split in made.splits:
            reader = self.system.read(made, split, ["value"])
            rows |= {value for batch in reader for value in batch.column(0).to_pylist()}
        within = [one for one in self.written if window.start <= one[2] < window.end]
        return [(shard, at) for value, shard, at in within if value not in rows]


@pytest.mark.slow_except("0")
@pytest.mark.parametrize("seed", range(4))
def test_no_verdict_on_a_real_topic_covers_what_a_look_contradicts(bench, system, seed):
    pulsar = pytest.importorskip("pulsar")
    dice = random.Random(seed)  # noqa: S311 - repeatable
    told = Told(bench, system)
    acts = dice.choices(["truncate", "unload", "delete", "remake"], k=4)
    steps = ["write", "look", "write", *(step for act in acts for step in (act, "look", "write"))]
    for step in steps:
        # partitions that are not there can be neither emptied nor deleted
        with contextlib.suppress(httpx.HTTPStatusError, pulsar.PulsarException):
            getattr(told, step)(dice)
        told.mark()
    # a window can be read once its end is older than the slack
    wait_until(lambda: now() > told.marks[-1] + 2 * MILLISECOND, "the last window's end")
    for start, end in ((0, len(told.marks) - 1), *(sorted(dice.sample(range(len(told.marks)), 2)) for _ in range(6))):
        window = Window(told.marks[start], told.marks[end])
        made = told.plan(window)
        lost = {one.shard for one in made.losses}
        unproven = {one.shard for one in made.unproven}
        for shard, at in told.missing(window, made):
            assert shard in lost | unproven, (seed, steps, start, end)
            looks = [one for one in told.looks if window.start <= one.at < at]
            saw = [one for one in looks if one.tail[shard] > EARLIEST and shard not in one.empty]
            assert shard in lost or not saw, (seed, steps, start, end)
        assert not lost or {"truncate", "delete"} & set(acts), "to load a topic again loses nothing"


def test_what_a_look_within_the_window_saw_and_is_gone_is_lost_with_its_size(bench, system, journal):
    topic = Topic(bench)
    start = now() - MILLISECOND
    tail_observations = []
    for _ in range(2):
        topic.write(5)
        tail_observations.append(system.observe_tail(topic.source))
    topic.write(120)
    end = now()
    topic.trim()
    for seen in tail_observations:
        journal.note_tail_observation(topic.source.key, seen)
    wait_until(lambda: now() > end + 5 * MILLISECOND, "a few milliseconds")
    with pytest.raises(StartTrimmed, match="where the topic ended at"):
        pinned_plan(journal, system, asked(topic, Window(start, end)), replan=False)
    told = {"first_seen": tail_observations[0], "seen_later": tuple(tail_observations[1:]), "slack": MILLISECOND}
    with pytest.raises(StartTrimmed, match="at least 5 entries of the window"):
        system.plan(PlanRequest(topic.source, Window(start, end), "tests", **told))


@pytest.mark.parametrize("how", ["partition", "pattern", "trimmed"])
def test_what_was_seen_only_after_the_window_and_is_gone_is_lost(bench, system, journal, how):
    topic, other = Topic(bench, 2 if how == "partition" else None), Topic(bench)
    shard = f"{topic.name}-partition-0" if how == "partition" else topic.name
    source = PulsarSource(pattern=f"persistent://{bench.namespace}/seen-.*") if how == "pattern" else topic.source
    start = now() - MILLISECOND
    topic.write(3, shard)
    end = now() + MILLISECOND
    wait_until(lambda: now() > end + 5 * MILLISECOND, "a few milliseconds")
    other.write(1)
    observe_tail(journal, system, source)
    if how == "trimmed":
        bench.unload(topic.name)
        topic.trim()
    else:
        bench.server.admin("DELETE", f"{bench.path(topic.name)}{shard.removeprefix(topic.name)}?force=true")
    window = WindowQuestion(source, Window(start, end), PublishTime(MILLISECOND))
    with pytest.raises(StartTrimmed, match="is gone" if how == "trimmed" else "no longer exists"):
        pinned_plan(journal, system, WindowRead(window, "tests"), replan=False)
    accepted = fresh_plan(journal, system, WindowRead(window, "tests", on_loss="record"))
    assert [loss.shard for loss in accepted.losses] == [shard]
