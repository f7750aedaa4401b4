from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_streams.errors import InvalidRequest, ProcessFailed
from airflow_provider_streams.systems.conditions import condition_from_json, condition_to_json
from airflow_provider_streams.systems.pulsar.client.admin.responses import (
    EntryId,
    InternalStats,
    Ledger,
    Process,
    SlowTransaction,
)
from airflow_provider_streams.systems.pulsar.metadata.topics import Backlog
from airflow_provider_streams.systems.pulsar.operations.administration import offload_bound
from airflow_provider_streams.systems.pulsar.operations.conditions import (
    BacklogReached,
    Finished,
    NoOldTransactions,
    Terminated,
)

NOW = datetime(2026, 11, 21, tzinfo=UTC)
T = "persistent://public/default/t"


FULL = Backlog(entries=10, bytes=1000, oldest=NOW - timedelta(minutes=5))


def limit(**limits) -> BacklogReached:
    return BacklogReached("s", **limits)


def stats(state="LedgerOpened", ledgers=()):
    return InternalStats(tuple(ledgers), EntryId(4, 2), state)


def test_terminated_means_every_shard():
    both = {"a": stats("Terminated"), "b": stats()}
    assert not Terminated.judge(both).ready
    assert "b" in Terminated.judge(both).because
    assert Terminated.judge({"a": stats("Terminated")}).facts == {"last": {"a": "4:2"}}


@pytest.mark.parametrize(("second", "ready"), [("SUCCESS", True), ("RUNNING", False), ("NOT_RUN", False)])
def test_a_process_has_finished_when_it_succeeded_on_every_shard(second, ready):
    assert Finished("compaction").judge({"a": Process("SUCCESS"), "b": Process(second)}).ready == ready


def test_a_process_that_failed_is_an_error_not_a_wait():
    with pytest.raises(ProcessFailed, match=r"b: its offload failed: no offloader"):
        Finished("offload").judge({"a": Process("RUNNING"), "b": Process("ERROR", "no offloader")})


def test_only_old_transactions_of_the_topics_are_waited_for():
    ours = SlowTransaction("(1,2)", NOW - timedelta(minutes=5), frozenset({f"{T}-partition-2"}))
    other = SlowTransaction("(1,3)", NOW - timedelta(hours=5), frozenset({"persistent://public/default/other"}))
    assert NoOldTransactions.judge([other], {T}, NOW).ready
    found = NoOldTransactions.judge([other, ours], {T}, NOW)
    assert (found.ready, found.facts) == (False, {"open": [{"id": "(1,2)", "age_seconds": 300.0}]})


def test_a_drained_backlog_may_be_a_little():
    backlog = Backlog(3, 300, NOW - timedelta(seconds=20))
    assert not limit(entries=0, direction="at_most").judge(backlog, NOW).ready
    assert limit(entries=3, direction="at_most").judge(backlog, NOW).ready
    assert not limit(entries=3, age_seconds=10, direction="at_most").judge(backlog, NOW).ready


def test_slow_transactions_refuse_a_negative_age():
    with pytest.raises(InvalidRequest):
        NoOldTransactions(-1)


@pytest.mark.parametrize(
    "condition",
    [Terminated(), Finished("offload"), NoOldTransactions(2.5), BacklogReached("s", 4, None, 1.5)],
    ids=lambda c: c.kind,
)
def test_conditions_survive_a_triggers_serialization(condition):
    assert condition_from_json("pulsar", json.loads(json.dumps(condition_to_json(condition)))) == condition


LEDGERS = [Ledger(10, 5, 100), Ledger(11, 5, 100), Ledger(12, 2, 40)]


@pytest.mark.parametrize(("keep", "ledger"), [(0, 12), (40, 12), (41, 11), (140, 11), (141, 10), (10**9, 10)])
def test_offloading_leaves_the_open_ledger_and_what_shall_be_kept(keep, ledger):
    bound = offload_bound(stats(ledgers=LEDGERS), keep)
    assert bound == (EntryId(ledger, 0) if ledger != 10 else None)


def test_what_is_offloaded_already_is_not_offloaded_again():
    moved = [Ledger(10, 5, 100, offloaded=True), *LEDGERS[1:]]
    assert offload_bound(stats(ledgers=moved), 41) is None


@pytest.mark.parametrize(
    ("wanted", "ready"),
    [
        (limit(entries=10), True),
        (limit(entries=11), False),
        (limit(entries=11, bytes=1000), True),
        (limit(entries=11, age_seconds=300), True),
        (limit(entries=11, bytes=1001, age_seconds=360), False),
        (limit(entries=10, direction="at_most"), True),
        (limit(entries=10, bytes=999, direction="at_most"), False),
        (limit(age_seconds=240, direction="at_most"), False),
    ],
)
def test_one_limit_forms_a_batch_and_all_must_hold_when_drained(wanted, ready):
    assert wanted.judge(FULL, NOW).ready is ready


def test_a_drained_backlog_meets_every_at_most_limit():
    assert limit(entries=0, bytes=0, age_seconds=0, direction="at_most").judge(Backlog(0, 0), NOW).ready


@given(
    entries=st.integers(0, 10**12),
    size=st.none() | st.integers(0, 10**15),
    age=st.none() | st.floats(0, 1e9),
    direction=st.sampled_from(["at_least", "at_most"]),
)
def test_a_limit_survives_a_triggers_serialization(entries, size, age, direction):
    wanted = BacklogReached("s", entries, size, age, direction)
    assert condition_from_json("pulsar", json.loads(json.dumps(condition_to_json(wanted)))) == wanted


@pytest.mark.parametrize("wrong", [{}, {"entries": -1}, {"age_seconds": -1}, {"entries": 1, "direction": "exactly"}])
def test_a_limit_that_says_nothing_or_nonsense_is_refused(wrong):
    with pytest.raises(InvalidRequest):
        limit(**wrong)


def test_a_condition_that_the_system_does_not_have_is_refused():
    with pytest.raises(InvalidRequest, match="no condition 'watermark' of pulsar; known: backlog, finished"):
        condition_from_json("pulsar", {"kind": "watermark", "moment": 1})
