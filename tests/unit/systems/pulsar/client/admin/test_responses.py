import json
from datetime import UTC, datetime

import pytest

from airflow_provider_streams.redaction import register_secret
from airflow_provider_streams.systems.pulsar.client.admin import changes, requests
from airflow_provider_streams.systems.pulsar.client.admin.responses import (
    BacklogQuota,
    EntryId,
    InternalInfo,
    InternalStats,
    Ledger,
    LedgerInfo,
    PeekedEntry,
    Retention,
    TopicStats,
)
from airflow_provider_streams.systems.rest.response import Answer, reason

TOPIC = "persistent://shop/orders/events"
STATS = {
    "entriesAddedCounter": 51,
    "numberOfEntries": 51,
    "totalSize": 1991,
    "currentLedgerEntries": 11,
    "currentLedgerSize": 441,
    "lastLedgerCreatedTimestamp": "2026-11-21T06:50:46.161Z",
    "lastConfirmedEntry": "42:10",
    "state": "LedgerOpened",
    "ledgers": [
        {"ledgerId": 40, "entries": 20, "size": 770, "offloaded": False},
        {"ledgerId": 41, "entries": 20, "size": 780, "offloaded": True},
        {"ledgerId": 42, "entries": 0, "size": 0, "offloaded": False},
    ],
    "cursors": {"reader-1a2b": {"markDeletePosition": "40:4"}, "o+d%2Bd%3A": {}},
    "compactedLedger": {"ledgerId": -1, "entries": -1, "size": -1},
}


def answer(data=None, headers=None):
    return Answer(200, headers or {}, b"" if data is None else json.dumps(data).encode())


def test_the_open_ledger_has_its_current_counts():
    stats = InternalStats.of(STATS)
    assert stats.ledgers == (Ledger(40, 20, 770), Ledger(41, 20, 780, True), Ledger(42, 11, 441))
    assert stats.last_confirmed == EntryId(42, 10)
    assert stats.bytes == 1991
    assert stats.compacted_ledger is None
    assert not stats.terminated
    assert stats.cursors == {"reader-1a2b": EntryId(40, 4), "o d+d:": None}, "the broker encodes names"
    assert stats.last_ledger_created == datetime(2026, 11, 21, 6, 50, 46, 161000, UTC)


def test_a_full_last_ledger_without_a_next_one_keeps_its_counts():
    full = {**STATS, "ledgers": STATS["ledgers"][:2], "currentLedgerEntries": 20, "state": "CreatingLedger"}
    assert InternalStats.of(full).ledgers[-1] == Ledger(41, 20, 780, True)


def test_a_new_ledger_does_not_inherit_the_count_of_the_one_just_closed():
    # seen on a real broker: the ledger list is newer than the current counts
    rolled = [
        *STATS["ledgers"][:2],
        {"ledgerId": 42, "entries": 11, "size": 441},
        {"ledgerId": 43, "entries": 0, "size": 0},
    ]
    assert InternalStats.of({**STATS, "ledgers": rolled}).ledgers[-1] == Ledger(43, 0, 0)


def test_terminated_and_compacted_topics_are_seen():
    stats = InternalStats.of({**STATS, "state": "Terminated", "compactedLedger": {"ledgerId": 38}})
    assert stats.terminated
    assert stats.compacted_ledger == 38


def test_the_open_ledger_of_the_metadata_has_no_close_time():
    info = InternalInfo.read_all(
        TOPIC,
        answer(
            {
                "version": 3,
                "creationDate": "2026-11-21T06:50:46.119Z",
                "modificationDate": "2026-11-21T07:50:46.119+01:00",
                "ledgers": [
                    {"ledgerId": 40, "entries": 20, "size": 770, "timestamp": 1795243846141},
                    {"ledgerId": 42, "timestamp": 1795243960950},
                ],
                "cursors": {"pin%2B1": {"markDelete": {"ledgerId": 75, "entryId": -1}}},
            }
        ),
    )[TOPIC]
    assert info.ledgers == (LedgerInfo(40, 1795243846141), LedgerInfo(42, None))
    assert info.created == info.modified == datetime(2026, 11, 21, 6, 50, 46, 119000, UTC)
    assert info.durable_cursors == {"pin+1"}


def test_the_metadata_of_a_partitioned_topic_are_those_of_its_partitions():
    one = {"version": 0, "creationDate": "2026-11-21T06:50:46.119Z", "ledgers": [], "cursors": {}}
    found = InternalInfo.read_all(TOPIC, answer({"version": 0, "partitions": {f"{TOPIC}-partition-0": one}}))
    assert {shard: (info.version, info.ledgers) for shard, info in found.items()} == {f"{TOPIC}-partition-0": (0, ())}


def test_partitions_a_broker_does_not_answer_for_are_left_out():
    found = InternalStats.read_partitions(answer({"metadata": {}, "partitions": {f"{TOPIC}-partition-1": STATS}}))
    assert found == {f"{TOPIC}-partition-1": InternalStats.of(STATS)}
    assert InternalStats.read_partitions(answer({"partitions": None})) == {}


def peeked(**headers):
    return PeekedEntry.read(
        answer(headers={f"x-pulsar-{name.replace('_', '-')}": text for name, text in headers.items()})
    )


def test_a_peek_tells_markers_and_aborted_entries():
    assert peeked(marker_type="21").marker_type == 21
    assert peeked(txn_aborted="true").aborted
    plain = peeked(message_id="43:3", num_batch_message="5", publish_time="2026-11-21T08:16:20.87+01:00")
    assert plain.publish_time == datetime(2026, 11, 21, 7, 16, 20, 870000, UTC)
    assert (plain.aborted, plain.marker_type) == (False, None)


def test_retention_has_no_limit_a_limit_or_nothing():
    assert Retention.read(answer({"retentionTimeInMinutes": -1, "retentionSizeInMB": -1})).unlimited
    assert Retention.read(answer({"retentionTimeInMinutes": 90, "retentionSizeInMB": -1})) == Retention(5400, None)
    assert Retention.read(answer({"retentionTimeInMinutes": 0, "retentionSizeInMB": 0})) == Retention(0, 0)
    assert Retention.read(answer()) == Retention(0, 0)


def test_subscriptions_count_entries_and_the_oldest_publish_time():
    stats = TopicStats.read(
        answer(
            {
                "msgInCounter": 105,
                "storageSize": 9,
                "ongoingTxnCount": 1,
                "subscriptions": {
                    "s": {
                        "msgBacklog": 15,
                        "backlogSize": 800,
                        "earliestMsgPublishTimeInBacklog": 1795243846141,
                        "consumers": [{}, {}],
                        "isDurable": True,
                        "unackedMessages": 3,
                    },
                    "idle": {"msgBacklog": 0, "backlogSize": -1, "earliestMsgPublishTimeInBacklog": 0},
                },
            }
        )
    )
    assert stats.open_transactions == 1
    assert stats.subscriptions["s"].entries == 15
    assert stats.subscriptions["s"].oldest == datetime.fromtimestamp(1795243846.141, UTC)
    assert stats.subscriptions["s"].consumers == 2
    assert stats.subscriptions["idle"].oldest is None
    assert stats.subscriptions["idle"].bytes is None


def test_a_quota_that_evicts_says_so():
    quota = BacklogQuota.of({"limitSize": 10, "limitTime": -1, "policy": "consumer_backlog_eviction"})
    assert quota == BacklogQuota(10, None, "consumer_backlog_eviction")
    assert quota.evicts


def test_looking_at_partitions_never_creates_a_topic():
    request = requests.partitions(TOPIC)
    assert request.params == {"checkAllowAutoCreation": "false"}


def test_every_call_only_reads():
    made = [
        requests.brokers_version(), requests.brokers_ready(), requests.clusters(), requests.namespaces("shop"),
        requests.topics("shop/orders"), requests.partitioned_topics("shop/orders"), requests.partitions(TOPIC),
        requests.stats(TOPIC), requests.partitioned_stats(TOPIC), requests.internal_stats(TOPIC),
        requests.internal_info(TOPIC), requests.last_message_id(TOPIC), requests.message_id_at(TOPIC, 1),
        requests.partitioned_internal_stats(TOPIC), requests.peek(TOPIC, 1, 2), requests.subscriptions(TOPIC),
        requests.retention(TOPIC), requests.message_ttl(TOPIC), requests.backlog_quotas(TOPIC),
        requests.namespace_backlog_quotas(TOPIC),
        requests.transaction_buffer(TOPIC),
    ]  # fmt: skip
    for request in made:
        assert (request.method, request.body) == ("GET", None)
        assert not request.path.startswith("/")
        assert TOPIC in request.action or "persistent/shop" not in request.path or request.subject == "shop/orders"


def test_a_subscriptions_name_is_encoded_as_often_as_the_broker_decodes_it():
    path = changes.drop_subscription("persistent://public/default/t", "a+b c").path
    assert path.endswith("/subscription/a%252Bb%2Bc")
    assert changes.drop_subscription("persistent://public/default/t", "plain-1.x").path.endswith(
        "/subscription/plain-1.x"
    )


def test_the_quotas_in_effect_are_not_asked_for_as_that_changes_the_namespace():
    assert "applied" not in requests.backlog_quotas(TOPIC).params


@pytest.mark.parametrize("before", range(240, 300, 12))
def test_a_token_in_a_servers_words_is_hidden_before_they_are_cut(before):
    token = register_secret("header.canary0123456789canary0123456789.signature")
    said = reason(Answer(401, {}, json.dumps({"reason": "x" * before + f" {token} is wrong"}).encode()))
    assert "canary" not in said
    assert "header" not in said
