from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import pytest

from airflow_provider_streams import Cuts, PulsarSource, Window
from airflow_provider_streams.errors import AuthenticationFailed, SourceNotFound
from airflow_provider_streams.hooks.pulsar import PulsarHook
from airflow_provider_streams.model.stream.position import Position
from airflow_provider_streams.model.window.basis import Chained
from airflow_provider_streams.systems.pulsar.metadata.topics import Backlog
from airflow_provider_streams.systems.pulsar.operations.conditions import BacklogReached
from airflow_provider_streams.windows.plan.readiness import WindowQuestion

T = "persistent/public/default"
PAST = Window(datetime(2026, 11, 20, 10, tzinfo=UTC), datetime(2026, 11, 20, 11, tzinfo=UTC))
SUBSCRIPTION = {"msgBacklog": 4, "backlogSize": 400, "earliestMsgPublishTimeInBacklog": 1_795_000_000_000}


@pytest.fixture
def hook(pulsar_connection):
    made = PulsarHook()
    yield made
    made.close()


@pytest.fixture
def broker(pulsar_connection):
    pulsar_connection.answers |= {
        f"{T}/parts/partitions": {"partitions": 2},
        f"{T}/plain/partitions": {"partitions": 0},
        f"{T}/parts/partitioned-stats": {"msgInCounter": 5, "subscriptions": {"s": SUBSCRIPTION}},
        f"{T}/plain/stats": {"msgInCounter": 3, "subscriptions": {"s": {"msgBacklog": 1, "backlogSize": 10}}},
    }
    return pulsar_connection


@pytest.mark.parametrize(
    ("fields", "url"),
    [
        ({"host": "broker", "port": 6651}, "pulsar://broker:6651"),
        ({"host": "broker"}, "pulsar://broker"),
        ({"host": "pulsar+ssl://broker", "port": 6651}, "pulsar+ssl://broker:6651"),
        ({"host": "pulsar://a:6650,b:6650"}, "pulsar://a:6650,b:6650"),
        ({"host": "broker", "port": 1, "extra": {"service_url": "pulsar://other:2"}}, "pulsar://other:2"),
        ({"host": "broker", "port": 1, "extra": {"serviceUrl": "pulsar://other:2"}}, "pulsar://other:2"),
    ],
)
def test_host_and_port_are_the_service_url_unless_the_extra_says_otherwise(monkeypatch, fields, url):
    monkeypatch.setenv("AIRFLOW_CONN_PULSAR_DEFAULT", json.dumps({"conn_type": "pulsar", **fields}))
    assert PulsarHook().endpoint().service_url == url


def test_the_password_is_the_token_and_is_sent(hook, broker):
    assert hook.endpoint().token_value() == "token-5d2c"
    hook.partitions("parts")
    assert broker.authorizations == {"Bearer token-5d2c"}


def test_a_token_file_of_the_extra_is_in_place_of_the_password(monkeypatch, tmp_path):
    (tmp_path / "token").write_text("from-file\n")
    monkeypatch.setenv("AIRFLOW__STREAMS__CREDENTIAL_FOLDERS", str(tmp_path))
    connection = {"conn_type": "pulsar", "host": "pulsar+ssl://h"}
    connection["extra"] = {"token_file": str(tmp_path / "token")}
    monkeypatch.setenv("AIRFLOW_CONN_PULSAR_DEFAULT", json.dumps(connection))
    assert PulsarHook().endpoint().token_value() == "from-file"


def test_partitions_and_stats_take_names_as_sources_do(hook, broker):
    assert hook.partitions("parts") == 2
    assert hook.partitions("public/default/plain") == 0
    assert hook.stats("parts").messages_in == 5
    assert hook.stats("persistent://public/default/plain").messages_in == 3
    assert hook.subscriptions("parts") == ("s",)


async def test_an_event_loop_gets_the_same_answers(hook, broker):
    assert await hook.apartitions("parts") == hook.partitions("parts")
    assert await hook.astats("parts") == hook.stats("parts")
    await hook.aclose()


def test_topics_of_a_namespace_come_once(hook, broker):
    listed = [f"persistent://public/default/{name}" for name in ("parts-partition-0", "parts-partition-1", "plain")]
    broker.answers[f"{T}"] = listed
    broker.answers[f"{T}/partitioned"] = ["persistent://public/default/parts"]
    assert hook.topics("public/default") == (
        "persistent://public/default/parts",
        "persistent://public/default/plain",
    )


def test_a_time_is_a_place_in_each_partition(hook, broker):
    moment = datetime(2026, 11, 20, 10, 0, 0, 500, tzinfo=UTC)
    ms = int(moment.timestamp() * 1000) + 1  # the first whole millisecond at or after it
    for number in range(2):
        broker.answers[f"{T}/parts-partition-{number}/messageid/{ms}"] = {"ledgerId": 40 + number, "entryId": 7}
    assert dict(hook.position_at("parts", moment)) == {
        f"persistent://public/default/parts-partition-{number}": Position.of(40 + number, 7, -1) for number in range(2)
    }


def test_the_backlog_of_a_source_is_the_sum_over_its_topics(hook, broker):
    oldest = datetime.fromtimestamp(1_795_000_000, UTC)
    assert hook.backlog("parts", "s") == Backlog(4, 400, oldest)
    assert hook.backlog_of(PulsarSource(["parts", "plain"]), "s") == Backlog(5, 410, oldest)


async def test_polling_a_backlog_costs_one_request_per_topic(hook, broker):
    source = PulsarSource(["parts", "plain"])
    condition = BacklogReached("s", entries=5)
    found = await hook.acheck(source, condition)
    assert hook.check(source, condition).facts["entries"] == 5
    assert (found.ready, found.facts["entries"], found.facts["bytes"]) == (True, 5, 410)
    broker.seen.clear()
    await hook.acheck(source, condition)
    assert sorted(broker.seen) == [f"{T}/parts/partitioned-stats", f"{T}/plain/stats"]
    await hook.aclose()


def test_a_missing_subscription_is_named(hook, broker):
    with pytest.raises(SourceNotFound, match="subscription missing of persistent://public/default/plain"):
        hook.backlog("plain", "missing")


@pytest.mark.parametrize("ask", ["readiness", "areadiness"])
async def test_before_its_time_nothing_is_asked(hook, broker, ask):
    future = Window(datetime.now(UTC), datetime.now(UTC) + timedelta(hours=1))
    answer = getattr(hook, ask)(WindowQuestion(PulsarSource("plain"), future))
    answer = answer if ask == "readiness" else await answer
    assert not answer.ready
    assert "at the earliest" in answer.because
    assert broker.seen == []


@pytest.mark.parametrize("ask", ["readiness", "areadiness"])
async def test_after_its_time_a_window_without_open_transactions_is_ready(hook, broker, ask):
    answer = getattr(hook, ask)(WindowQuestion(PulsarSource(["parts", "plain"]), PAST))
    answer = answer if ask == "readiness" else await answer
    assert answer.ready
    await hook.aclose()


def holds_back(broker, published, max_read="5:1"):
    """An open transaction whose first message, entry 5:2 of three, was published then."""
    ledgers = [{"ledgerId": 5, "entries": 0, "size": 0}]
    broker.answers |= {
        f"{T}/plain/stats": {"ongoingTxnCount": 1},
        f"{T}/plain/internalStats": {
            "ledgers": ledgers,
            "currentLedgerSize": 30,
            "lastConfirmedEntry": "5:2",
            "state": "LedgerOpened",
        },
        "/admin/v3/transactions/transactionBufferStats/public/default/plain": {"maxReadPosition": max_read},
        f"{T}/plain/ledger/5/entry/2": (200, "", {"X-Pulsar-publish-time": published.isoformat()}),
    }


@pytest.mark.parametrize("ask", ["readiness", "areadiness"])
async def test_an_open_transaction_that_holds_the_end_back_is_waited_for(hook, broker, ask):
    question = WindowQuestion(PulsarSource("plain"), PAST)

    async def asked():
        answer = getattr(hook, ask)(question)
        return answer if ask == "readiness" else await answer

    holds_back(broker, PAST.end - timedelta(seconds=1))
    answer = await asked()
    assert not answer.ready
    assert "entry 5:2 waits for an open transaction" in answer.because
    # it wrote nothing before the window's end plus slack, or it has ended
    holds_back(broker, PAST.end + timedelta(seconds=60))
    assert (await asked()).ready
    holds_back(broker, PAST.end - timedelta(seconds=1), max_read="5:2")
    assert (await asked()).ready
    await hook.aclose()


async def test_a_chained_window_ends_at_the_tail_whatever_transactions_do(hook, broker):
    broker.answers[f"{T}/plain/stats"] = {"ongoingTxnCount": 1}
    assert (await hook.areadiness(WindowQuestion(PulsarSource("plain"), PAST, Chained()))).ready
    await hook.aclose()


def test_cuts_can_be_asked_for_at_once():
    question = WindowQuestion(
        PulsarSource("plain"), Window(datetime.now(UTC), datetime.max.replace(tzinfo=UTC)), Cuts()
    )
    assert question.early(datetime.now(UTC)) == ""


def test_the_connection_test_names_the_broker_that_does_not_answer_without_secrets(hook):
    ok, message = hook.test_connection()
    assert not ok
    assert "127.0.0.1:1" in message
    assert "token-5d2c" not in message


def test_the_connection_test_asks_broker_and_admin_api(hook, broker, monkeypatch):
    from airflow_provider_streams.hooks import pulsar

    monkeypatch.setattr(pulsar, "check_any_broker", lambda endpoint: endpoint.addresses[0])
    broker.answers["brokers/version"] = "4.0.8"
    assert hook.test_connection() == (
        True,
        f"Pulsar 4.0.8 answers at {broker.url}. The broker at pulsar://127.0.0.1:1 accepts us.",
    )
    broker.answers["brokers/version"] = (401, "<html>Authentication required</html>")
    ok, message = hook.test_connection()
    assert not ok
    assert "does not accept our credentials" in message


def test_the_connection_test_fails_without_an_admin_api_as_planning_will(monkeypatch):
    from airflow_provider_streams.hooks import pulsar

    monkeypatch.setattr(pulsar, "check_any_broker", lambda endpoint: endpoint.addresses[0])
    monkeypatch.setenv("AIRFLOW_CONN_PULSAR_DEFAULT", json.dumps({"conn_type": "pulsar", "host": "broker"}))
    ok, message = PulsarHook().test_connection()
    assert not ok
    assert "The broker at pulsar://broker:6650 accepts us" in message
    assert "admin_url" in message


def test_a_foreign_error_is_not_shown(hook, monkeypatch):
    from airflow_provider_streams.hooks import pulsar

    def fail(_):
        raise RuntimeError("token-5d2c")

    monkeypatch.setattr(pulsar, "check_any_broker", fail)
    ok, message = hook.test_connection()
    assert not ok
    assert "token-5d2c" not in message


def test_wrong_credentials_are_an_error_of_their_own(hook, broker):
    broker.answers[f"{T}/plain/partitions"] = (401, "<html>HTTP ERROR 401 Authentication required</html>")
    with pytest.raises(AuthenticationFailed):
        hook.partitions("plain")
