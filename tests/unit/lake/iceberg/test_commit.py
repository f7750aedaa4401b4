"""What a REST catalog's answer to a commit means: refused, refused for now, or unknown."""

from __future__ import annotations

import pytest

from airflow_provider_streams import IcebergSink
from airflow_provider_streams.errors import CommitStateUnknown, SinkError, TableUnavailable
from airflow_provider_streams.lake.connections import given
from airflow_provider_streams.lake.iceberg import commit
from tests.integration.lake.iceberg_reading import ids, stored_files
from tests.integration.lake.landing import Attempt, hour, rows_of
from tests.unit.lake.iceberg.rest_servers import catalog_serving

SINK = IcebergSink("shop.orders", conn_id="lake")
QUICK = {"commit.retry.num-retries": "1", "commit.retry.min-wait-ms": "1", "commit.retry.max-wait-ms": "1"}
TRIES = 3


@pytest.fixture(autouse=True)
def impatient(monkeypatch):
    monkeypatch.setattr(commit, "_PAUSES_SECONDS", (0.0,) * TRIES)


@pytest.fixture
def server(tmp_path):
    with catalog_serving(tmp_path, properties=QUICK) as server, given("lake", server.connection):
        yield server


@pytest.fixture
def attempt(server):
    """One that has written its files."""
    made = Attempt(SINK, hour(0), rows_of(0, 2)).write()
    server.asked.clear()
    return made


def commits(server):
    return sum(asked == ("POST", "/v1/namespaces/shop/tables/orders") for asked in server.asked)


@pytest.mark.parametrize("status", [400, 403, 404, 405, 413, 422])
def test_a_commit_that_is_refused_changed_nothing_and_is_not_tried_again(server, attempt, status):
    server.commits += [status] * 99
    with pytest.raises(SinkError, match=f"answer {status}") as caught:
        attempt.commit()
    assert type(caught.value) is SinkError
    assert not caught.value.retryable
    assert commits(server) == 1
    attempt.writer.discard()
    assert stored_files(SINK) == set()


@pytest.mark.parametrize("status", [401, 419])
def test_a_login_that_a_new_token_does_not_help_is_refused(server, attempt, status):
    """pyiceberg renews the token and sends the commit once more, by itself."""
    server.commits += [status] * 99
    with pytest.raises(SinkError, match=f"answer {status}: see that .* token") as caught:
        attempt.commit()
    assert type(caught.value) is SinkError
    assert commits(server) == 2
    attempt.writer.discard()
    assert stored_files(SINK) == set()


@pytest.mark.parametrize("status", [425, 429])
def test_a_commit_that_is_refused_for_now_is_tried_again(server, attempt, status):
    server.commits += [status] * TRIES
    with pytest.raises(TableUnavailable, match=f"answer {status}") as caught:
        attempt.commit()
    assert type(caught.value) is TableUnavailable
    assert commits(server) == TRIES
    attempt.writer.discard()
    assert stored_files(SINK) == set()


@pytest.mark.parametrize("status", [401, 409, 419, 425, 429, 500, 503])
def test_a_commit_whose_next_try_is_taken_is_done_once(server, attempt, status):
    server.commits += [status]
    attempt.commit()
    assert commits(server) == 2
    assert ids(SINK) == {hour(0): [0, 1]}


def test_a_conflict_that_stays_changed_nothing(server, attempt):
    server.commits += [409] * 99
    with pytest.raises(TableUnavailable, match=r"and is what it was: .*answer 409"):
        attempt.commit()
    attempt.writer.discard()
    assert stored_files(SINK) == set()


@pytest.mark.parametrize("status", [408, 499, 500, 501, 502, 503, 504, 599])
def test_a_commit_whose_result_no_answer_tells_keeps_its_files(server, attempt, status):
    server.commits += [status] * TRIES
    with pytest.raises(CommitStateUnknown, match=f"answer {status}") as caught:
        attempt.commit()
    assert caught.value.retryable
    assert commits(server) == TRIES
    attempt.writer.discard()
    assert len(stored_files(SINK)) == 2


@pytest.mark.parametrize("status", [403, 429])
def test_a_refusal_says_nothing_of_an_earlier_try(server, attempt, status):
    server.commits += [504, *[status] * TRIES]
    with pytest.raises(CommitStateUnknown, match=f"answer {status}"):
        attempt.commit()
    attempt.writer.discard()
    assert len(stored_files(SINK)) == 2


@pytest.mark.parametrize(
    ("status", "help_"), [(403, "let the connection's user change the table"), (404, "was dropped")]
)
def test_a_refusal_says_what_helps(server, attempt, status, help_):
    server.commits += [status]
    with pytest.raises(SinkError, match=f"refused the commit, and nothing was changed: .*answer {status}: .*{help_}"):
        attempt.commit()
