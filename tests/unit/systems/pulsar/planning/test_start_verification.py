from dataclasses import replace
from datetime import timedelta

import pytest

from airflow_provider_streams.model.stream.cut import Cut
from airflow_provider_streams.model.stream.position import Position
from airflow_provider_streams.model.stream.tail_observation import TailObservation
from airflow_provider_streams.model.window.window import Window
from airflow_provider_streams.systems.pulsar.client.admin.responses import (
    EntryId,
    InternalInfo,
    InternalStats,
    Ledger,
    LedgerInfo,
    Retention,
)
from airflow_provider_streams.systems.pulsar.metadata.ledgers import EARLIEST, at
from airflow_provider_streams.systems.pulsar.planning.shard_evidence import Evidence, seen_by_shard
from airflow_provider_streams.systems.pulsar.planning.start_verification import (
    doubt_at_head,
    doubt_in_window,
    doubt_since_position,
    held_since,
    verdict,
)
from tests.unit.systems.pulsar.cluster import EPOCH_MS, at_ms

HOUR = timedelta(hours=1)
START = at_ms(EPOCH_MS)
WINDOW = Window(START, START + HOUR)
NOW = START + 2 * HOUR
SLACK = timedelta(minutes=1)
NOTHING, FOREVER = Retention(0, 0), Retention(None, None)


NAME = "persistent://public/default/t"


def evidence(
    *, retention=NOTHING, first=START + SLACK, version=9, created=-5, modified=0.5, ledgers=((40, 20), (42, 3)), **more
):
    """Hours relative to the window's start; by default the topic has lost something, at an unknown time."""
    rows = tuple(Ledger(ledger, entries, 100 * entries) for ledger, entries in ledgers)
    stats = InternalStats(
        rows,
        more.pop("last", EntryId(42, 2)),
        "LedgerOpened",
        last_ledger_created=START + modified * HOUR,
        cursors=more.pop("cursors", {}),
    )
    info = InternalInfo(
        version,
        START + created * HOUR,
        START + modified * HOUR,
        more.pop("closed", tuple(LedgerInfo(ledger, None) for ledger, _ in ledgers)),
        more.pop("durable", frozenset()),
    )
    return Evidence(NAME, stats, info, retention, first, **more)


def tail_observation(tail, *, at=-1, identity=None, empty=None):
    """Of the topic, so many hours after the window's start."""
    incarnation = () if identity is None else ((NAME, identity),)
    seen = TailObservation(
        START + at * HOUR,
        Cut({NAME: tail} if tail else {}),
        incarnation,
        None if empty is None else frozenset([NAME] if empty else []),
    )
    return seen_by_shard([seen]).get(NAME, ())


def made(hours):
    return (START + hours * HOUR).isoformat()


def doubt(found, **more):
    return doubt_in_window(found, WINDOW, SLACK, **more)


def test_what_is_neither_proven_nor_known_to_be_removed_is_unproven():
    for retention in (FOREVER, None, Retention(3 * 3600, None), Retention(None, 10**9)):
        found = doubt(evidence(retention=retention))
        assert not found.is_lost
        assert "nothing proves that no older one was removed" in found.cause
    assert "no message is held" in doubt(evidence(retention=FOREVER, first=None, ledgers=((42, 0),))).cause


@pytest.mark.parametrize("hours", [0.5, 1.5])
@pytest.mark.parametrize("retention", [FOREVER, NOTHING])
def test_of_a_topic_that_is_younger_than_the_window_an_earlier_life_may_have_held_more(hours, retention):
    found = doubt(evidence(created=hours, version=2, retention=retention))
    assert not found.is_lost
    assert "no earlier one of its name is known" in found.cause


def test_a_partition_that_does_not_exist_proves_nothing():
    found = doubt(Evidence(NAME, None))
    assert not found.is_lost
    assert f"`pulsar-admin topics create-missed-partitions {NAME}`" in found.cause


def test_todays_rule_says_nothing_of_the_past():
    for retention in (NOTHING, Retention(3600, None), Retention(2 * 3600, None)):
        found = doubt(evidence(retention=retention))
        assert not found.is_lost
        assert "nothing proves that no older one was removed" in found.cause


@pytest.mark.parametrize(
    "proven",
    [
        pytest.param(evidence(version=2), id="every ledger ever made is there"),
        pytest.param(evidence(modified=-0.5), id="the topic did not change since"),
        pytest.param(
            evidence(seen=tail_observation(at(40, 7))), id="it held the place where it ended when it was seen"
        ),
        pytest.param(
            evidence(seen=tail_observation(at(39, 7), at=-1), ledgers=((39, 7), (42, 3))), id="and that ledger's end"
        ),
        pytest.param(
            evidence(ledgers=((56, 0),), last=EntryId(55, 19), seen=tail_observation(at(55, 20))), id="idle since"
        ),
    ],
)
def test_a_proof_takes_the_doubt_away(proven):
    assert doubt(proven) is None


def test_an_older_message_that_is_held_is_a_proof():
    assert doubt(evidence(), older_is_held=True) is None


@pytest.mark.parametrize(
    "unproven",
    [
        evidence(version=3),
        evidence(modified=-0.01),
        evidence(created=0.5),
        # seen after the window's start less slack, or with another shard only
        evidence(seen=tail_observation(at(40, 7), at=-0.01)),
        evidence(seen=tail_observation(None)),
    ],
)
def test_what_is_nearly_a_proof_is_none(unproven):
    assert doubt(unproven)


def test_the_only_ledger_made_before_the_window_proves_it():
    stats = InternalStats((Ledger(42, 3, 1),), EntryId(42, 2), "LedgerOpened", last_ledger_created=START - HOUR)
    later = InternalInfo(9, START - 5 * HOUR, START + HOUR, ())
    assert doubt(Evidence(NAME, stats, later, NOTHING, START + SLACK)) is None


def test_the_only_ledger_made_within_the_slack_before_the_window_proves_nothing():
    made_at = START - SLACK / 2
    stats = InternalStats((Ledger(42, 3, 1),), EntryId(42, 2), "LedgerOpened", last_ledger_created=made_at)
    later = InternalInfo(9, START - 5 * HOUR, START + HOUR, ())
    assert doubt(Evidence(NAME, stats, later, NOTHING, START + SLACK))


def test_a_ledger_that_was_seen_and_is_gone_is_a_loss_whatever_the_rule_is_today():
    found = doubt(evidence(retention=FOREVER, seen=tail_observation(at(38, 5))))
    assert found.is_lost
    assert f"ledger 38, where the topic ended at {(START - HOUR).isoformat()}, is gone" in found.cause
    # one that was empty goes when its topic is loaded again
    for empty in (None, True):
        assert not doubt(evidence(retention=FOREVER, seen=tail_observation(at(38, 0), empty=empty))).is_lost
    assert doubt(evidence(retention=FOREVER, seen=tail_observation(at(38, 0), empty=False))).is_lost, (
        "older ledgers were not"
    )


def test_a_sighting_within_the_window_speaks_louder_than_clocks_and_messages():
    found = evidence(retention=FOREVER, modified=-0.5, seen=tail_observation(at(38, 5), at=0.5))
    assert doubt(found, older_is_held=True).is_lost
    assert "before that may also be gone" in doubt(found).cause


def test_a_sighting_after_the_window_proves_loss_unless_what_it_saw_came_later():
    after = tail_observation(at(38, 5), at=1.5)
    found = doubt(evidence(modified=-0.5, seen=after), older_is_held=True)
    assert found.is_lost
    assert found.place is None, "what was stored before the tail observation is also gone"
    assert "ledger 38, where the topic ended at" in found.cause
    assert doubt_at_head(evidence(seen=after), WINDOW).is_lost
    assert not doubt(evidence(seen=tail_observation(at(38, 5), at=1.5, identity=made(1.2)), created=1.2)).is_lost
    for hours, is_lost in ((1.2, False), (1.01, True)):
        empty = tail_observation(at(38, 0), at=hours, empty=True)
        assert doubt(evidence(seen=(*empty, *after))).is_lost == is_lost, "only slack says that it may have come before"
    assert not doubt(evidence(seen=tail_observation(at(38, 0), at=1.5))).is_lost, "it may have seen none"


def test_where_nothing_was_stored_between_two_sightings_the_window_is_proven():
    for hours in (-1, 0.5):
        quiet = (
            *tail_observation(at(38, 5), at=-1),
            *tail_observation(at(38, 5), at=hours),
            *tail_observation(at(38, 5), at=1.5),
        )
        for found in (evidence(seen=quiet), Evidence(NAME, None, seen=quiet)):
            assert doubt(found) is None
        assert doubt(evidence(seen=quiet[1:2])).is_lost
        assert doubt(evidence(seen=(*quiet[:2], *tail_observation(at(38, 6), at=1.5)))).is_lost


def test_where_nothing_was_stored_between_two_sightings_of_a_topic_that_has_ended_the_window_is_proven():
    before, after = (tail_observation(at(7, 5), at=hours, identity=made(-9), empty=False)[0] for hours in (-1, 1.5))
    for found in (evidence(created=1.8, seen=(before, after)), evidence(created=1.8, seen=(before, after), version=2)):
        assert doubt(found) is None
        assert doubt_at_head(found, WINDOW) is None
    for seen in ((before,), (after,), (before, replace(after, tail=at(7, 6)))):
        assert doubt(evidence(created=1.8, seen=seen)).is_lost
    other = replace(after, incarnation=made(1.2))
    assert doubt(evidence(created=1.8, seen=(before, other))).is_lost, "a place in another one"


def test_of_a_topic_made_anew_that_held_nothing_when_it_was_seen_nobody_knows_what_it_held_later():
    for hours in (-1, 0.5):
        found = doubt(evidence(created=1.8, seen=tail_observation(at(7, 0), at=hours, identity=made(-9), empty=True)))
        assert not found.is_lost
        assert "made again" in found.cause


def test_a_partition_that_is_not_there_and_was_seen_with_entries_is_lost():
    for hours in (-1, 0.5, 1.5):
        assert doubt(Evidence(NAME, None, seen=tail_observation(at(7, 5), at=hours))).is_lost
        assert doubt(
            evidence(created=1.8, seen=tail_observation(at(7, 5), at=hours, identity=made(-1), empty=False))
        ).is_lost
    assert doubt(Evidence(NAME, None, seen=tail_observation(at(7, 5), at=1.5, identity=made(0.5)))).is_lost
    made_later = tail_observation(at(7, 5), at=1.5, identity=made(1.2))
    assert not doubt(evidence(created=1.8, seen=made_later)).is_lost
    assert not doubt(Evidence(NAME, None, seen=made_later)).is_lost
    assert not doubt(Evidence(NAME, None, seen=tail_observation(at(7, 0), empty=True))).is_lost
    assert doubt_at_head(Evidence(NAME, None, seen=tail_observation(at(7, 5), at=0.5)), WINDOW).is_lost


def test_what_two_sightings_saw_come_and_is_gone_is_counted():
    seen = (
        *tail_observation(at(37, 5), at=0.1),
        *tail_observation(at(37, 9), at=0.2),
        *tail_observation(at(38, 3), at=0.3),
    )
    found = doubt(evidence(retention=FOREVER, seen=seen))
    assert "at least 7 entries of the window" in found.cause
    assert found.place == at(37, 5)


def test_a_start_that_may_have_been_empty_is_lost_if_entries_were_seen_there():
    assert doubt_since_position(
        evidence(retention=FOREVER, seen=tail_observation(at(38, 9), at=0.5)), at(38, 0)
    ).is_lost
    assert doubt_since_position(evidence(retention=FOREVER, seen=tail_observation(at(38, 9), at=0.5)), EARLIEST).is_lost
    earlier = evidence(retention=FOREVER, seen=tail_observation(at(38, 9), at=0.5))
    assert not doubt_since_position(earlier, EARLIEST, START + HOUR).is_lost, "that was an earlier one"


def test_a_topic_made_anew_since_it_was_seen_is_a_loss():
    before = tail_observation(at(7, 5), identity=made(-100))
    for found in (evidence(retention=FOREVER, created=0.5, version=2, seen=before), evidence(created=5, seen=before)):
        assert doubt(found).is_lost
        assert "was deleted, and made again at" in doubt(found).cause
    # what was published after it was made again is in this life
    assert doubt(evidence(created=-0.5, version=2, seen=before)) is None
    same = tail_observation(at(40, 3), identity=made(-5))
    assert doubt(evidence(seen=same)) is None


def test_a_topic_that_was_seen_and_is_not_there_is_in_doubt():
    assert doubt(Evidence(NAME, None, seen=tail_observation(at(7, 5)))).cause
    assert doubt_since_position(Evidence(NAME, None), at(7, 5)).is_lost
    assert not doubt_since_position(Evidence(NAME, None), EARLIEST).is_lost


LOST = evidence(ledgers=((40, 20), (42, 3)))


def test_a_position_in_a_ledger_that_is_gone_is_lost():
    found = doubt_since_position(LOST, at(38, 5))
    assert found.is_lost
    assert "ledger 38 is gone" in found.cause


@pytest.mark.parametrize("start", [at(40, 0), at(40, 7), at(40, 20), at(41, 0), at(42, 3), Position.of(40, 3, 2)])
def test_a_position_still_held_is_not(start):
    assert doubt_since_position(LOST, start) is None


def test_nothing_written_after_a_position_cannot_be_lost():
    idle = evidence(ledgers=((56, 0),), last=EntryId(55, 19))
    assert doubt_since_position(idle, at(55, 20)) is None
    assert doubt_since_position(idle, at(55, 19))


def test_a_durable_subscription_behind_a_position_kept_everything():
    marks = {"pin": EntryId(38, 4), "reader-1a": EntryId(1, 0)}
    assert doubt_since_position(evidence(cursors=marks, durable=frozenset({"pin"})), at(38, 5)) is None
    assert doubt_since_position(evidence(cursors=marks, durable=frozenset({"pin"})), at(38, 4))
    assert doubt_since_position(evidence(cursors=marks), at(38, 5)), "readers hold nothing"


def test_an_empty_ledger_may_go_by_itself_where_nothing_is_removed_so_that_nobody_can_say():
    assert not doubt_since_position(evidence(retention=FOREVER), at(38, 0)).is_lost
    assert doubt_since_position(evidence(retention=FOREVER), at(38, 1)).is_lost
    for retention in (NOTHING, None):
        assert doubt_since_position(evidence(retention=retention), at(38, 0)).is_lost


def test_to_terminate_a_topic_removes_nothing():
    found = evidence(version=3)
    assert doubt(found)
    assert doubt(replace(found, info=replace(found.info, terminated=True))) is None


def test_a_position_in_a_ledger_that_the_topic_never_had_is_of_another_life():
    found = doubt_since_position(evidence(version=2), at(38, 5))
    assert found.is_lost
    assert "never was one of this topic" in found.cause
    before = tail_observation(at(7, 5), identity=made(-100))
    assert doubt_since_position(evidence(seen=before), at(40, 3)).is_lost, "numbers may come again on another cluster"


def test_the_beginning_of_a_topic_that_lost_nothing_is_held():
    assert doubt_since_position(evidence(version=2), EARLIEST) is None
    assert not doubt_since_position(evidence(), EARLIEST).is_lost


def verdict_of(found, start=None, end=None):
    return verdict(found, start or at(40, 0), end or at(42, 3), NOW)


def test_a_range_without_entries_is_empty():
    assert verdict_of(LOST, at(41, 0), at(42, 0)) == "empty"
    assert verdict_of(Evidence(NAME, None)) == "empty"


def test_what_we_may_not_know_is_unknown():
    assert verdict_of(evidence(retention=None)) == "unknown"


def test_verdicts_name_what_will_remove_a_range_soon():
    closed_ms = EPOCH_MS - 3_600_000
    closed = (LedgerInfo(40, closed_ms), LedgerInfo(42, None))
    assert verdict_of(evidence(retention=FOREVER)) == "ok"
    assert verdict_of(evidence(retention=Retention(7 * 86400, None), closed=closed)) == "ok"
    # closed three hours ago, kept for three and a quarter
    assert verdict_of(evidence(retention=Retention(195 * 60, None), closed=closed)) == "edge: 15 min to expiry"
    assert verdict_of(evidence(retention=Retention(60, None), closed=closed)) == "edge: 0 min to expiry"
    assert "until its ledger is full" in verdict_of(evidence(closed=closed), at(42, 0))
    assert "size" in verdict_of(evidence(retention=Retention(None, 2400), closed=closed))


def test_a_durable_subscription_makes_a_range_safe():
    held = evidence(cursors={"pin": EntryId(40, -1)}, durable=frozenset({"pin"}))
    assert verdict_of(held) == "ok"


def test_what_is_held_reaches_back_to_the_first_message_unless_nothing_was_removed():
    assert held_since(evidence()) == START + SLACK
    assert held_since(evidence(first=None, ledgers=((42, 0),))) == START + 0.5 * HOUR, "the open ledger was made then"
    assert held_since(evidence(version=2)) is None, "as many changes as ledgers: none was removed"
    assert held_since(Evidence(NAME, None)) is None, "nothing was ever written"


# The first window of a chain


@pytest.mark.parametrize(
    "proven",
    [
        evidence(version=2),
        evidence(seen=tail_observation(at(40, 7), at=0)),
        evidence(ledgers=((56, 0),), last=EntryId(55, 19), seen=tail_observation(at(55, 20), at=-3)),
    ],
)
def test_a_chain_that_begins_with_all_that_was_stored_since_the_window_did_is_proven(proven):
    assert doubt_at_head(proven, WINDOW) is None


def test_a_chain_lost_what_was_seen_within_its_first_window_and_is_gone():
    lost = doubt_at_head(evidence(retention=FOREVER, seen=tail_observation(at(38, 5), at=0.5)), WINDOW)
    assert lost.is_lost
    assert "ledger 38, where the topic ended at" in lost.cause
    recreated = doubt_at_head(
        evidence(version=2, created=0.5, seen=tail_observation(at(7, 5), identity=made(-100))), WINDOW
    )
    assert recreated.is_lost
    assert "made again" in recreated.cause


@pytest.mark.parametrize(
    "unproven",
    [
        evidence(),
        # deleted, or never made
        Evidence(NAME, None),
        # what was stored after it may have been stored before the window
        evidence(seen=tail_observation(at(38, 5), at=-1)),
        # it may have been empty
        evidence(seen=tail_observation(at(38, 0), at=0.5)),
        # held since within the window, but not since its begin
        evidence(seen=tail_observation(at(40, 7), at=0.5)),
    ],
)
def test_a_chain_from_a_head_that_nothing_proves_is_unproven(unproven):
    assert not doubt_at_head(unproven, WINDOW).is_lost
