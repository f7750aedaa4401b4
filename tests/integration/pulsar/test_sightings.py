"""What is noted of a topic when it is first looked at decides later whether its past is proven, or proven lost."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from airflow_provider_streams.errors import StartTrimmed, StartUnproven, TermsChanged, WindowNotReady
from airflow_provider_streams.journal.sightings import SPACING
from airflow_provider_streams.journal.store import Journal
from airflow_provider_streams.model.basis import Chained, Cuts, PublishTime
from airflow_provider_streams.model.plan import Plan
from airflow_provider_streams.model.sighting import Sighting
from airflow_provider_streams.model.window import Window
from airflow_provider_streams.systems.pulsar.source import PulsarSource
from airflow_provider_streams.systems.pulsar.system import PulsarSystem
from airflow_provider_streams.testing.landing import cover_without_spark
from airflow_provider_streams.testing.servers.waiting import wait_until
from airflow_provider_streams.windows.lateness import plan_with_late_rows
from airflow_provider_streams.windows.planning import WindowRead, fresh_plan, pinned_plan
from airflow_provider_streams.windows.readiness import WindowQuestion
from airflow_provider_streams.windows.recording import record
from airflow_provider_streams.windows.sightings import look

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
        """All but the ledger that is open; whoever asks now is told that everything is kept for ever."""
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
    assert plan_with_late_rows(journal, system, topic.source, pinned, HOUR).unproven, "late rows prove nothing"
    with pytest.raises(TermsChanged, match="accepted by on_unproven='land'"):
        pinned_plan(journal, system, asked(topic, window, on_unproven="fail"), replan=False)
    # what planning saw proves the windows after it
    topic.write(120)
    later = Window(window.end + SPACING, window.end + SPACING + HOUR)
    assert journal.sighting(topic.source.key, later.start).at <= later.start


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
    look(journal, system, topic.source)
    begin = journal.sighting(topic.source.key, now()).at + 2 * MILLISECOND
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
        look(journal, system, topic.source)
    elif who == "records":
        (noted,) = record(journal, {topic.source.conn_id: system}, [topic.source], "tests")
        assert noted.error is None
    else:
        with pytest.raises(WindowNotReady):
            fresh_plan(journal, system, asked(topic, Window(now(), now() + HOUR)))
    seen = journal.sighting(topic.source.key, now())
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
    again = plan_with_late_rows(journal, system, topic.source, plan, HOUR)
    assert again.losses == plan.losses, "with its late rows it is no more whole than before"
    again.check()


def test_a_topic_made_anew_after_a_look_is_proven_lost(bench, system, journal):
    topic = Topic(bench)
    topic.write(60)
    look(journal, system, topic.source)
    window = hour_until(now())
    path = bench.path(topic.name)
    bench.server.admin("DELETE", f"{path}?force=true")
    bench.server.create_topic(topic.name.removeprefix("persistent://"))
    with pytest.raises(StartTrimmed, match="deleted, and made anew"):
        fresh_plan(journal, system, asked(topic, window))


def test_a_topic_that_a_pattern_matched_and_that_is_gone_is_a_loss(bench, system, journal):
    kept, gone = Topic(bench), Topic(bench)
    kept.write(5), gone.write(5)
    pattern = PulsarSource(pattern=f"persistent://{bench.namespace}/seen-.*")
    look(journal, system, pattern)
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
    seen = system.look(topic.source)
    with Journal.open(f"sqlite:///{tmp_path / 'other.db'}") as other:
        other.note_sighting(topic.source.key, Sighting(end - 2 * HOUR, seen.tail, seen.identity))
        assert [part.verdict for part in fresh_plan(other, system, read).ranges] == ["ok"]
