from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from airflow_provider_streams.errors import InvalidRequest, ProcessFailed
from airflow_provider_streams.systems.pulsar.admin.answers import (
    EntryId,
    InternalStats,
    Ledger,
    MessageId,
    Process,
    SlowTransaction,
)
from airflow_provider_streams.systems.pulsar.administration import offload_bound
from airflow_provider_streams.systems.pulsar.backlog import Backlog
from airflow_provider_streams.systems.pulsar.conditions import (
    CaughtUp,
    Finished,
    NoOldTransactions,
    Terminated,
    condition_from_json,
    condition_to_json,
)

NOW = datetime(2026, 11, 21, tzinfo=UTC)
T = "persistent://public/default/t"


def stats(state="LedgerOpened", ledgers=()):
    return InternalStats(tuple(ledgers), EntryId(4, 2), state)


def test_terminated_means_every_shard():
    both = {"a": stats("Terminated"), "b": stats()}
    assert not Terminated.judge(both).met
    assert "b" in Terminated.judge(both).reason
    assert Terminated.judge({"a": stats("Terminated")}).facts == {"last": {"a": "4:2"}}


@pytest.mark.parametrize(("second", "met"), [("SUCCESS", True), ("RUNNING", False), ("NOT_RUN", False)])
def test_a_process_has_finished_when_it_succeeded_on_every_shard(second, met):
    assert Finished("compaction").judge({"a": Process("SUCCESS"), "b": Process(second)}).met == met


def test_a_process_that_failed_is_an_error_not_a_wait():
    with pytest.raises(ProcessFailed, match=r"b: its offload failed: no offloader"):
        Finished("offload").judge({"a": Process("RUNNING"), "b": Process("ERROR", "no offloader")})


def test_only_old_transactions_of_the_topics_are_waited_for():
    ours = SlowTransaction("(1,2)", NOW - timedelta(minutes=5), frozenset({f"{T}-partition-2"}))
    other = SlowTransaction("(1,3)", NOW - timedelta(hours=5), frozenset({"persistent://public/default/other"}))
    assert NoOldTransactions.judge([other], {T}, NOW).met
    found = NoOldTransactions.judge([other, ours], {T}, NOW)
    assert (found.met, found.facts) == (False, {"open": [{"id": "(1,2)", "age_seconds": 300.0}]})


def test_caught_up_allows_a_little():
    backlog = Backlog(3, 300, NOW - timedelta(seconds=20))
    assert not CaughtUp("s").judge(backlog, NOW).met
    assert CaughtUp("s", entries=3).judge(backlog, NOW).met
    assert not CaughtUp("s", entries=3, age_seconds=10).judge(backlog, NOW).met


def test_slow_transactions_refuse_a_negative_age():
    with pytest.raises(InvalidRequest):
        NoOldTransactions(-1)


@pytest.mark.parametrize(
    "condition",
    [Terminated(), Finished("offload"), NoOldTransactions(2.5), CaughtUp("s", 4, 1.5)],
    ids=lambda c: c.kind,
)
def test_conditions_survive_a_triggers_serialization(condition):
    assert condition_from_json(condition_to_json(condition)) == condition


LEDGERS = [Ledger(10, 5, 100), Ledger(11, 5, 100), Ledger(12, 2, 40)]


@pytest.mark.parametrize(("keep", "ledger"), [(0, 12), (40, 12), (41, 11), (140, 11), (141, 10), (10**9, 10)])
def test_offloading_leaves_the_open_ledger_and_what_shall_be_kept(keep, ledger):
    bound = offload_bound(stats(ledgers=LEDGERS), keep)
    assert bound == (MessageId(ledger, 0) if ledger != 10 else None)


def test_what_is_offloaded_already_is_not_offloaded_again():
    moved = [Ledger(10, 5, 100, offloaded=True), *LEDGERS[1:]]
    assert offload_bound(stats(ledgers=moved), 41) is None
