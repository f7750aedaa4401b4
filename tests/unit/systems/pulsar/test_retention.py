from datetime import timedelta

import pytest

from airflow_provider_streams.model.position import Position
from airflow_provider_streams.model.window import Window
from airflow_provider_streams.systems.pulsar.admin.answers import (
    EntryId,
    InternalInfo,
    InternalStats,
    Ledger,
    LedgerInfo,
    Retention,
)
from airflow_provider_streams.systems.pulsar.layout import EARLIEST, at
from airflow_provider_streams.systems.pulsar.retention import (
    Evidence,
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


def evidence(
    *, retention=NOTHING, first=START + SLACK, version=9, created=-5, modified=0.5, ledgers=((40, 20), (42, 3)), **more
):
    """Hours relative to the window's start; by default the topic has lost something, nobody knows when."""
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
        more.pop("closed", ()),
        more.pop("durable", frozenset()),
    )
    return Evidence(stats, info, retention, first, **more)


def doubt(found):
    return doubt_in_window(found, WINDOW, SLACK, NOW)


def test_without_proof_an_earlier_event_may_have_been_removed():
    assert "older ones may have been removed" in doubt(evidence())
    assert "no message is held" in doubt(evidence(first=None, ledgers=((42, 0),)))


@pytest.mark.parametrize(
    "proven",
    [
        pytest.param(evidence(first=START - SLACK), id="an older message is held"),
        pytest.param(evidence(version=2), id="every ledger ever made is there"),
        pytest.param(evidence(modified=-0.5), id="the topic did not change since"),
        pytest.param(evidence(created=1.5), id="the topic is younger than the window"),
        pytest.param(evidence(retention=FOREVER), id="nothing is ever removed"),
        pytest.param(evidence(retention=Retention(3 * 3600, None)), id="retention reaches back"),
        pytest.param(Evidence(None), id="nothing was ever written"),
    ],
)
def test_a_proof_takes_the_doubt_away(proven):
    assert doubt(proven) == ""


@pytest.mark.parametrize(
    "unproven",
    [
        evidence(retention=Retention(3600, None)),
        evidence(retention=Retention(None, 10**9)),
        evidence(retention=None),
        evidence(version=3),
        evidence(modified=-0.01),
        evidence(created=0.5),
        evidence(first=START),
    ],
)
def test_what_is_nearly_a_proof_is_none(unproven):
    assert doubt(unproven)


def test_the_only_ledger_made_before_the_window_proves_it():
    stats = InternalStats((Ledger(42, 3, 1),), EntryId(42, 2), "LedgerOpened", last_ledger_created=START - HOUR)
    later = InternalInfo(9, START - 5 * HOUR, START + HOUR, ())
    assert doubt(Evidence(stats, later, NOTHING, START + SLACK)) == ""


LOST = evidence(ledgers=((40, 20), (42, 3)))


def test_a_position_in_a_ledger_that_is_gone_is_in_doubt():
    assert "ledger 38 is gone" in doubt_since_position(LOST, at(38, 5))


@pytest.mark.parametrize("start", [at(40, 0), at(40, 7), at(40, 20), at(41, 0), at(42, 3), Position.of(40, 3, 2)])
def test_a_position_still_held_is_not(start):
    assert doubt_since_position(LOST, start) == ""


def test_nothing_written_after_a_position_cannot_be_lost():
    idle = evidence(ledgers=((56, 0),), last=EntryId(55, 19))
    assert doubt_since_position(idle, at(55, 20)) == ""
    assert doubt_since_position(idle, at(55, 19))


def test_a_durable_subscription_behind_a_position_kept_everything():
    marks = {"pin": EntryId(38, 4), "reader-1a": EntryId(1, 0)}
    assert doubt_since_position(evidence(cursors=marks, durable=frozenset({"pin"})), at(38, 5)) == ""
    assert doubt_since_position(evidence(cursors=marks, durable=frozenset({"pin"})), at(38, 4))
    assert doubt_since_position(evidence(cursors=marks), at(38, 5)), "readers hold nothing"


def test_an_empty_ledger_may_go_by_itself_where_nothing_is_removed():
    assert doubt_since_position(evidence(retention=FOREVER), at(38, 0)) == ""
    assert doubt_since_position(evidence(retention=FOREVER), at(38, 1))
    assert doubt_since_position(evidence(retention=None), at(38, 0))


def test_the_beginning_of_a_topic_that_lost_nothing_is_held():
    assert doubt_since_position(evidence(version=2), EARLIEST) == ""
    assert doubt_since_position(evidence(), EARLIEST)


def verdict_of(found, start=None, end=None):
    return verdict(found, start or at(40, 0), end or at(42, 3), NOW)


def test_a_range_without_entries_is_empty():
    assert verdict_of(LOST, at(41, 0), at(42, 0)) == "empty"
    assert verdict_of(Evidence(None)) == "empty"


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
    assert held_since(Evidence(None)) is None, "nothing was ever written"


def test_every_window_from_the_horizon_on_is_held_whole():
    lossy = evidence()
    assert "may have been removed" in doubt_in_window(lossy, WINDOW, SLACK, NOW)
    after = Window(held_since(lossy) + timedelta(milliseconds=1), START + HOUR)
    assert doubt_in_window(lossy, after, SLACK, NOW) == ""
